"""`rlcore plugins new`: what it makes works as it is, for every kind, and what it cannot make it says."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rlcore_plugin_testing import new_plugin
from rlcore_plugin_testing.new_plugin import FILES, LONGEST, SUMMARIES, kind_of

import rlcore
from rlcore.config.sections import find_launcher
from rlcore.plugins.component import COMPONENT_SECTIONS, KINDS
from rlcore.plugins.discovery import installed

ROOT = Path(__file__).resolve().parents[3]
TEMPLATES = Path(new_plugin.__file__).parent / "templates" / "plugin"
NEW_KINDS = tuple(SUMMARIES)
SHORT = ["run.total_frames=512", "evaluator.episodes=2", "checkpoint.every=512", "metrics.every=512"]


def fresh_venv():
    """Import the module of the tests of the core."""
    spec = importlib.util.spec_from_file_location("fresh_venv", ROOT / "tests" / "fresh_venv.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def new(cli, site, tmp_path, monkeypatch):
    """Make a package, and put its sources and its metadata on the path, as an editable install has them."""

    def make(name, kind):
        outcome = cli("plugins", "new", name, "--kind", kind)
        assert outcome.code == 0, outcome.err
        folder = tmp_path / f"rlcore-plugin-{name}"
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        ((entry_point, package),) = project["entry-points"]["rlcore"].items()
        site.add(project["name"], "nothing", "", requires=project["dependencies"], entry_point=entry_point)
        info = site.folder / f"{package}-1.0.dist-info"
        (info / "entry_points.txt").write_text(f"[rlcore]\n{entry_point} = {package}\n")
        monkeypatch.syspath_prepend(str(folder / "src"))
        return folder

    yield make
    for module in [name for name in sys.modules if name.startswith("rlcore_plugin_my_")]:
        del sys.modules[module]


# what is made


# what `rlcore.build` builds; ranks are for the command
BUILT = [kind for kind in NEW_KINDS if kind != "launcher"]


def short_config(folder, kind):
    """The config of the example, for two batches."""
    batch = "collector.steps=64" if kind == "collector" else "collector.frames_per_batch=256"
    return rlcore.load_config(folder / "example.toml", [*SHORT, batch])


@pytest.mark.parametrize("kind", BUILT)
def test_the_example_of_every_kind_trains_and_uses_the_component(kind, new):
    config = short_config(new(f"my-{kind}", kind), kind)
    owners = {section.provided.owner.plugin for found in config.sections.values() for section in found}
    assert f"my-{kind}" in owners
    assert rlcore.build(config).trainer.train().frames == 512


@pytest.mark.parametrize("kind", BUILT)
def test_the_example_of_every_kind_resumes_to_the_weights_of_a_run_without_a_stop(kind, new, tmp_path):
    folder = new(f"my-{kind}", kind)

    def trainer(name, resume=False):
        config = short_config(folder, kind)
        config = replace(config, run=config.run.model_copy(update={"folder": str(tmp_path / name)}))
        return rlcore.build(config, resume=resume).trainer

    whole, stopped = trainer("whole"), trainer("parts")
    whole.train()
    stopped.stop_at = 256
    assert stopped.train().frames == 256
    resumed = trainer("parts", resume=True)
    assert resumed.train().frames == 512
    expected, resumed_weights = whole.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(resumed_weights[name], weight) for name, weight in expected.items())


@pytest.mark.slow
def test_the_launcher_passes_its_tests_and_its_example_trains_in_several_processes(new, tmp_path):
    folder = new("my-launcher", "launcher")
    done = in_its_own_process(folder, tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", NEW_KINDS)
def test_readme_and_example_show_every_key_with_its_default(kind, new):
    folder = new(f"my-{kind}", kind)
    (block,) = re.findall(r"```toml\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert block in (folder / "example.toml").read_text() + "\n"
    ((section, table),) = tomllib.loads(block).items()
    table = table[0] if isinstance(table, list) else table
    assert {**COMPONENT_SECTIONS, "ranks": ("launcher", False)}[section][0] == kind_of(kind)
    assert table.pop("use") == f"my-{kind}"
    config = rlcore.load_config(folder / "example.toml")
    if kind == "launcher":
        provided, _ = find_launcher(config.ranks, config.host)
    else:
        (provided,) = [part.provided for part in config.sections[section] if part.name.startswith("my-")]
    of_rlcore = {"checkpointer": "every", "launcher": "count"}.get(kind)
    assert provided.schema()().model_dump(mode="json") == {
        key: value for key, value in table.items() if key != of_rlcore
    }


def test_plugins_show_tells_what_the_package_provides(new, cli):
    new("my-hook", "hook")
    shown = cli("plugins", "show", "my-hook").out
    assert "hook my-hook: logs the mean return of the latest episodes" in shown
    assert "episodes: default 20. episodes that the mean is taken over" in shown


def test_what_is_made_is_clean_whatever_the_length_of_the_name(cli, tmp_path):
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    longest = "ab" + "-c" * ((LONGEST - 2) // 2)
    assert len(longest) == LONGEST
    for kind in NEW_KINDS:
        for number, name in enumerate(("a", "some-name", longest)):
            assert cli("plugins", "new", name, "--kind", kind, "--folder", f"made/{kind}{number}").code == 0
    for command in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = subprocess.run([ruff, *command, tmp_path / "made"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    files = [path for path in (tmp_path / "made").rglob("*") if path.is_file()]
    assert len(files) == 3 * len(NEW_KINDS) * (len(FILES) + 1)
    assert not [path for path in files if re.search(r"\$[a-z{]+", path.read_text().replace("${{", ""))]


def test_the_metadata_are_those_that_rlcore_and_an_index_need(cli):
    assert cli("plugins", "new", "my-env", "--kind", "env").code == 0
    folder = Path("rlcore-plugin-my-env")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    major, minor, _ = rlcore.__version__.split(".")
    assert project["name"] == "rlcore-plugin-my-env"
    assert project["description"] == "An env for rlcore: a corridor to walk along"
    assert project["dependencies"] == [f"rlcore>={major}.{minor},<{int(major) + 1}"]
    assert project["entry-points"] == {"rlcore": {"my-env": "rlcore_plugin_my_env"}}
    assert "license" not in project, "that is for the author to say"
    assert (folder / "src/rlcore_plugin_my_env/py.typed").read_text() == ""
    assert "id-token: write" in (folder / ".github/workflows/publish.yml").read_text()
    assert "${{ matrix.python }}" in (folder / ".github/workflows/test.yml").read_text()


def test_the_three_commands_that_it_prints_can_be_typed(cli, tmp_path):
    outcome = cli("plugins", "new", "my-hook", "--kind", "hook", "--folder", "a folder/of mine")
    first, second, *commands = outcome.out.splitlines()
    assert first == "made a folder/of mine: a hook that works, in src/rlcore_plugin_my_hook/hook.py"
    assert Path("a folder/of mine/src/rlcore_plugin_my_hook/hook.py").is_file()
    assert second == "next:"
    install, test, train = (shlex.split(command) for command in commands)
    assert install == ["pip", "install", "-e", "a folder/of mine", "rlcore[standard,test]"]
    assert test == ["pytest", "a folder/of mine"]
    assert train == ["rlcore", "train", "a folder/of mine/example.toml"]
    assert all(Path(words[-1 if words[0] == "rlcore" else 1]).exists() for words in (test, train))


@pytest.mark.parametrize(("name", "kind"), [("my-base", "model"), ("my-hook", "hook"), ("my-3d", "env")])
def test_a_class_has_the_name_of_its_plugin(name, kind, new):
    new(name, kind)
    module = importlib.import_module(f"rlcore_plugin_{name.replace('-', '_')}.{kind}")
    assert getattr(module, {"my-base": "MyBaseModel", "my-hook": "MyHook", "my-3d": "My3dEnv"}[name])


def test_a_class_does_not_take_a_name_that_its_module_imports(cli):
    assert cli("plugins", "new", "base", "--kind", "model").code == 0
    source = Path("rlcore-plugin-base/src/rlcore_plugin_base/model.py").read_text()
    assert "class BaseModelModel(nn.Module)" in source
    assert "class Config(BaseModel" in source


def test_templates_are_those_of_the_kinds():
    assert {kind_of(kind) for kind in NEW_KINDS} == set(KINDS)
    assert set(NEW_KINDS) == {path.name for path in TEMPLATES.iterdir() if path.is_dir()}
    named = {path.removeprefix("plugin/") for path in FILES.values() if "$" not in path}
    assert {path.name for path in TEMPLATES.iterdir() if path.is_file()} == named
    own = {"component.py.in", "test_contracts.py.in", "section.toml.in", "about.md.in"}
    assert all({path.name for path in (TEMPLATES / kind).iterdir()} == own for kind in NEW_KINDS)


def test_it_imports_nothing_heavy(tmp_path):
    heavy = ("torch", "tensordict", "gymnasium")
    code = (
        "import sys\nfrom rlcore.cli.command_line import main\n"
        "assert main(['plugins', 'new', 'light', '--kind', 'loss']) == 0\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


# the tutorial


@pytest.fixture
def tutorial(cli):
    """The package of the tutorial as `plugins new` makes it, and the files that the page puts into their place."""
    page = (ROOT / "docs" / "tutorial" / "first-plugin.md").read_text()
    outcome = cli("plugins", "new", "patience", "--kind", "hook")
    assert f"```text\n{outcome.out}```" in page
    return dict(re.findall(r"```\w+ file=(\S+)\n(.*?)```", page, re.DOTALL))


def test_the_tutorial_changes_files_that_there_are_and_in_pyproject_what_it_says(tutorial):
    assert len(tutorial) == 5
    assert all(Path(name).is_file() for name in tutorial)
    name = "rlcore-plugin-patience/pyproject.toml"
    before, after = (
        [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        for text in (Path(name).read_text(), tutorial[name])
    )
    changed = {line.split(" = ")[0] for line in set(before) ^ set(after)}
    assert changed == {"description", "license", "authors", "[project.urls]", "Repository"}


@pytest.mark.slow
def test_the_package_of_the_tutorial_is_clean_and_passes_its_tests(tutorial, new, tmp_path):
    shutil.rmtree(tmp_path / "rlcore-plugin-patience")
    folder = new("patience", "hook")
    for name, text in tutorial.items():
        Path(name).write_text(text)
    ruff = Path(sys.executable).with_name("ruff")
    for command in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = subprocess.run([ruff, *command, folder], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    done = in_its_own_process(folder, tmp_path)
    assert done.returncode == 0, done.stdout


def in_its_own_process(folder, site):
    """Run the tests of a package, which the fixture `new` has made."""
    paths = os.pathsep.join([str(site / "site"), str(folder / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, cwd=site)


# what is refused


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Mine", "lower case letters, digits and single hyphens, not 'Mine'; 'mine' would do"),
        ("my_hook", "not 'my_hook'; 'my-hook' would do"),
        ("my hook!", "'my-hook' would do"),
        ("3d", "single hyphens, not '3d'"),
        ("a--b", "'a-b' would do"),
        ("../up", "'up' would do"),
        ("", "single hyphens, not ''"),
        ("ü", "single hyphens, not 'ü'"),
        ("rlcore-plugin-mine", "leave out 'rlcore-plugin-': rlcore plugins new mine"),
        ("rlcore_plugin_my_hook", "leave out 'rlcore-plugin-': rlcore plugins new my-hook"),
        ("a" * 41, "has 41 characters; 40 are the most"),
        ("ppo", "'ppo' is that of an installed plugin (rlcore-plugin-ppo 0.1.0); choose another"),
        ("core", "'core' is that of an installed plugin (rlcore 0.1.0)"),
        ("adam", "'adam' is that of optimizer 'adam' (rlcore-plugin-gradient); choose another"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(cli, tmp_path, name, message):
    before = set(tmp_path.iterdir())
    outcome = cli("plugins", "new", name, "--kind", "hook")
    assert outcome.code == 2
    assert message in outcome.err
    assert set(tmp_path.iterdir()) == before, "nothing is made"


def test_the_names_of_other_peoples_plugins_are_taken_too(cli, site):
    site.add("rlcore-plugin-long-name", "module_of_other", "raise RuntimeError('imported')", entry_point="other")
    for name in ("other", "long-name"):
        outcome = cli("plugins", "new", name, "--kind", "hook")
        assert outcome.code == 2
        assert f"the name {name!r} is that of an installed plugin (rlcore-plugin-long-name 1.0)" in outcome.err
    site.add("something", "rlcore_plugin_module", "", entry_point="elsewhere")
    assert "gives the package 'rlcore_plugin_module'" in cli("plugins", "new", "module", "--kind", "hook").err


def test_a_folder_that_exists_is_left_alone(cli, tmp_path):
    (tmp_path / "rlcore-plugin-mine").mkdir()
    outcome = cli("plugins", "new", "mine", "--kind", "hook")
    assert outcome.code == 2
    assert "'rlcore-plugin-mine' exists already; name a new folder with --folder" in outcome.err
    assert not list((tmp_path / "rlcore-plugin-mine").iterdir())


def test_a_folder_that_cannot_be_made_is_an_error_of_the_command_line(cli, tmp_path):
    (tmp_path / "file").write_text("")
    outcome = cli("plugins", "new", "mine", "--kind", "hook", "--folder", "file/inside")
    assert outcome.code == 2
    assert "'file/inside' cannot be written: " in outcome.err


def test_an_unknown_kind_is_refused_with_those_that_there_are(cli):
    outcome = cli("plugins", "new", "mine", "--kind", "policy")
    assert outcome.code == 2
    assert "invalid choice: 'policy'" in outcome.err
    assert "checkpointer" in outcome.err


# installed for real


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A package of every kind, installed from its wheel into a new environment beside rlcore and its plugins."""
    tools, folder = fresh_venv(), tmp_path_factory.mktemp("made")
    for kind in NEW_KINDS:
        command = [sys.executable, "-m", "rlcore", "plugins", "new", f"my-{kind}", "--kind", kind]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    sources = [ROOT, *sorted((ROOT / "plugins").iterdir()), *sorted(folder.glob("rlcore-plugin-my-*"))]
    dist = tools.build_wheels(sources, folder / "wheels")
    venv = tools.FreshVenv(folder / "venv")
    venv.install(*dist.glob("*.whl"))
    return folder, venv


@pytest.mark.slow
def test_the_wheel_of_every_kind_passes_its_own_tests(made, tmp_path):
    """In one process, as most of its time is the import of torch."""
    folder, venv = made
    modules = [f"rlcore_plugin_my_{kind.replace('-', '_')}" for kind in NEW_KINDS]
    for kind in NEW_KINDS:
        shutil.copytree(folder / f"rlcore-plugin-my-{kind}/tests", tmp_path / kind / "tests")
        shutil.copy(folder / f"rlcore-plugin-my-{kind}/example.toml", tmp_path / kind)
    where = "\n".join(f"import {module}; print({module}.__file__)" for module in ("rlcore", *modules))
    assert all("/venv/" in place for place in venv.run("python", "-c", where, cwd=tmp_path).split())
    said = venv.run("python", "-m", "pytest", "-v", "--import-mode=importlib", *NEW_KINDS, cwd=tmp_path)
    for kind in NEW_KINDS:
        assert len(re.findall(rf"^{kind}/tests/.* PASSED", said, re.MULTILINE)) >= 10, kind
    assert "unknown" not in re.sub(r"test_\w+", "", said).lower()


@pytest.mark.slow
def test_what_was_installed_is_listed_and_found_well(made, tmp_path):
    _, venv = made
    listed = {line.split()[0] for line in venv.run("rlcore", "plugins", "list", cwd=tmp_path).splitlines()}
    ours = {plugin.name for plugin in installed() if not plugin.name.startswith("my-")}
    assert listed == ours | {f"my-{kind}" for kind in NEW_KINDS}
    assert "all is well" in venv.run("rlcore", "plugins", "doctor", cwd=tmp_path)
