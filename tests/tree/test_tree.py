"""Sizes, versions and layout of the repository."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import rlcore
from rlcore.config.core import DEFAULT_USE, OBSERVERS
from rlcore.plugins.catalogue import PREFIX, PUBLISHED
from rlcore.plugins.known import component_names

ROOT = Path(__file__).parents[2]
PLUGINS = sorted((ROOT / "plugins").iterdir())
SOURCES = sorted([*(ROOT / "rlcore").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")])
# it knows the inside of the core, so it fits the core of its minor version alone
INSIDER = "rlcore-plugin-testing"
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 400, 60


def relative(path):
    return str(path.relative_to(ROOT))


def pyproject(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text())


def row_of(folder):
    """Return what the catalogue says of the plugin in a folder."""
    row = PUBLISHED.get(folder.name.removeprefix(PREFIX))
    assert row is not None, f"{folder.name} is not in rlcore/plugins/catalogue.json: python docs/reference/generate.py"
    return row


def tracked():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_sources_are_found():
    assert len(SOURCES) > 40
    assert len(PLUGINS) >= 6


@pytest.fixture(scope="module")
def sources():
    """Path, text and syntax tree of every source; one test for all of them costs less than one for each."""
    return [(path, text, ast.parse(text)) for path in SOURCES for text in [path.read_text()]]


def test_no_file_is_too_long(sources):
    lines = {relative(path): len(text.splitlines()) for path, text, _ in sources}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_no_function_is_too_long(sources):
    found = [
        f"{relative(path)}:{node.lineno} {node.name} has {lines} lines"
        for path, _, tree in sources
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := node.end_lineno - node.lineno + 1) > MOST_LINES_OF_A_FUNCTION
    ]
    assert found == []


def test_a_module_begins_by_saying_what_belongs_in_it(sources):
    assert [relative(path) for path, text, tree in sources if text.strip() and not ast.get_docstring(tree)] == []


TEXT_OF_AN_ERROR = re.compile(r"(?:not )?in (?:str|repr|describe)\((?:error|failed|failure|problem|e|exc)\)")


def test_nothing_is_decided_by_the_text_of_an_error(sources):
    """Errors have kinds and attributes; a text may be said better at any time."""
    assert {relative(path): found for path, text, _ in sources if (found := TEXT_OF_AN_ERROR.findall(text))} == {}


@pytest.mark.parametrize("code", ['if "many" in str(error):', "x = 'a' not in describe(failed)"])
def test_a_decision_by_the_text_of_an_error_is_found(code):
    assert TEXT_OF_AN_ERROR.search(code)


def test_all_versions_agree():
    versions = {folder.name: pyproject(folder)["project"]["version"] for folder in (ROOT, *PLUGINS)}
    assert set(versions.values()) == {rlcore.__version__}, versions
    assert f"\nversion: {rlcore.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_every_plugin_is_laid_out_alike(folder):
    names = {path.name for path in folder.iterdir() if not path.name.startswith((".", "__")) and path.name != "build"}
    assert names == {"pyproject.toml", "README.md", "LICENSE", "src", "tests"}
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    module = folder.name.replace("-", "_")
    packages = {path.name for path in (folder / "src").iterdir() if not path.name.endswith(".egg-info")}
    assert packages == {module}
    assert (folder / "src" / module / "py.typed").is_file()
    assert (folder / "src" / module / "__init__.py").is_file()
    assert (folder / "tests" / "test_contracts.py").is_file()


def named_in(file):
    """Return (line, name, whether it is a contract suite) of every test and suite of a file."""
    tests = []
    for node in ast.parse(file.read_text()).body:
        if getattr(node, "name", "").startswith(("Test", "test_")):
            bases = [ast.unparse(base) for base in getattr(node, "bases", [])]
            tests.append((node.lineno, node.name, any(base.endswith("Contract") for base in bases)))
    return tests


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_the_contract_suites_of_a_plugin_are_in_one_file_and_come_first(folder):
    place = folder / "tests" / "test_contracts.py"
    (_, first, _), *others = named_in(place)
    assert first == "TestPlugin"
    lends_alone = not row_of(folder).components
    assert lends_alone or others[0][2], "no suite of a component"
    last = max((line for line, _, is_suite in others if is_suite), default=0)
    assert not [name for line, name, _ in others if name.startswith("test_") and line < last]
    for file in folder.glob("tests/*.py"):
        assert file == place or not [name for _, name, is_suite in named_in(file) if is_suite], relative(file)


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_every_plugin_says_who_it_is(folder):
    project = pyproject(folder)["project"]
    assert project["name"] == folder.name
    assert project["entry-points"]["rlcore"] == {
        folder.name.removeprefix("rlcore-plugin-"): folder.name.replace("-", "_")
    }, "one entry point, named after the distribution"
    major, minor, _ = rlcore.__version__.split(".")
    above = f"{major}.{int(minor) + 1}" if folder.name == INSIDER else int(major) + 1
    assert f"rlcore>={major}.{minor},<{above}" in project["dependencies"]
    assert project["requires-python"] == pyproject(ROOT)["project"]["requires-python"]
    for key in ("license", "license-files", "urls"):
        assert project.get(key) == pyproject(ROOT)["project"][key], f"{key} in the pyproject.toml of {folder.name}"
    lacking = {*pyproject(ROOT)["project"]["classifiers"]} - {*project.get("classifiers", ())}
    assert not lacking, f"classifiers in the pyproject.toml of {folder.name}"
    assert project.get("description"), f"description in the pyproject.toml of {folder.name}"


EXTRAS = pyproject(ROOT)["project"]["optional-dependencies"]
# tools of those who work on the core, and another name for what one plugin draws with
OF_NO_PLUGIN = {"parity", "plot", "test"}
# they ask for a MuJoCo older than the one that is current
OLDER = {"dm-control", "robotics"}


def ours_in(extra):
    """Return the distributions of the repository that an extra brings, with the core itself for other extras."""
    requirements = [Requirement(text) for text in EXTRAS[extra]]
    return {one.name: one for one in requirements if one.name.partition("-plugin-")[0] == "rlcore"}


def test_the_extras_name_plugins_of_the_repository():
    named = {name for extra in EXTRAS for name in ours_in(extra)} - {"rlcore"}
    assert named <= {folder.name for folder in PLUGINS}


def uses(values):
    """Return what the sections of a config name, without the plugins that they name besides."""
    sections = [entry for value in values.values() for entry in (value if isinstance(value, list) else [value])]
    return {entry["use"].rpartition(":")[2] for entry in sections if isinstance(entry, dict) and "use" in entry}


def test_the_extra_standard_brings_what_its_presets_and_the_command_line_name():
    standard = set(ours_in("standard"))
    presets = [preset for name in standard for preset in ROOT.glob(f"plugins/{name}/src/*/presets/*.toml")]
    assert presets
    tables = [tomllib.loads(preset.read_text()) for preset in presets]
    named = {use for values in tables for use in uses(values)} | uses(OBSERVERS) | set(DEFAULT_USE.values())
    plugins = component_names()
    # the presets of Atari say what they need besides
    assert {PREFIX + plugins[use] for use in named if use in plugins} - standard == {"rlcore-plugin-atari"}


def test_the_extra_all_brings_every_other():
    assert ours_in("all")["rlcore"].extras == set(EXTRAS) - OF_NO_PLUGIN - OLDER - {"all"}


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_distributions_of_the_same_minor_version(extra):
    major, minor, _ = rlcore.__version__.split(".")
    for requirement in ours_in(extra).values():
        assert requirement.specifier == SpecifierSet(f">={major}.{minor},<{major}.{int(minor) + 1}"), requirement
        if requirement.extras and requirement.name != "rlcore":
            folder = ROOT / "plugins" / requirement.name
            assert requirement.extras <= set(pyproject(folder)["project"]["optional-dependencies"]), requirement


def test_no_tracked_file_holds_a_path_of_somebodys_machine():
    homes = re.compile(
        rb"(?<![\w.])/(?:" + b"|".join([b"home", b"Users", b"root", b"work", b"mnt"]) + rb")/\w|[A-Z]:\\\\?Users"
    )
    found = [
        f"{relative(path)}: {match.group()!r}" for path in tracked() for match in homes.finditer(path.read_bytes())
    ]
    assert not found


def test_no_tracked_file_is_large_or_was_built():
    for path in tracked():
        assert path.stat().st_size < 1_000_000, relative(path)
        assert not re.search(r"(^|/)(__pycache__|build|dist|\.venv|runs)/|\.egg-info|\.pyc$", relative(path)), relative(
            path
        )


def test_examples_are_valid(monkeypatch):
    monkeypatch.chdir(ROOT)
    examples = sorted((ROOT / "examples").glob("*.toml"))
    assert examples
    for path in examples:
        assert rlcore.load_config(path).run.horizon > 0
