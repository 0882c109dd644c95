"""`rlcore plugins new --of-rlcore` makes what the tests of the tree ask of every plugin."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from rlcore_plugin_testing.new_plugin import SUMMARIES

from rlcore.plugins.catalogue import PUBLISHED, Published
from tests.contract import test_readmes as readmes
from tests.tree import test_tree as tree

LAYOUT = [
    tree.test_every_plugin_is_laid_out_alike,
    tree.test_the_contract_suites_of_a_plugin_are_in_one_file_and_come_first,
    tree.test_every_plugin_says_who_it_is,
    readmes.test_the_readme_says_how_to_install_and_what_is_saved,
]


@pytest.fixture
def root(workdir):
    """A folder in which the command takes what it would take from the root of a checkout."""
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(tree.ROOT / name, workdir)
    (workdir / "plugins").mkdir()
    (workdir / "rlcore").symlink_to(tree.ROOT / "rlcore")  # ruff sorts its imports apart where it finds it
    return workdir


def make(cli, kind):
    name = f"my-{kind}"
    outcome = cli("plugins", "new", name, "--kind", kind, "--of-rlcore")
    assert outcome.code == 0, outcome.err
    return Path("plugins") / f"rlcore-plugin-{name}", outcome.out


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("kind", ["env", "loss"])
def test_a_new_plugin_of_the_repository_is_as_the_tests_of_the_tree_ask(kind, cli, monkeypatch):
    folder, says = make(cli, kind)
    name = folder.name.removeprefix("rlcore-plugin-")
    assert f"pip install --no-deps --no-build-isolation -e {folder}\n" in says
    assert "python docs/reference/generate.py\n" in says
    with pytest.raises(AssertionError, match=f"{folder.name} is not in rlcore/plugins/catalogue.json"):
        tree.row_of(folder)
    monkeypatch.setitem(PUBLISHED, name, Published({kind: [name]}))
    for check in LAYOUT:
        check(folder)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    assert tree.pyproject(folder)["project"]["version"] == tree.pyproject(tree.ROOT)["project"]["version"]
    sections = [{section: [table]} for section, table in readmes.shown(folder)]
    assert set().union(*map(tree.uses, sections)) == {name}
    assert name in tree.uses(tomllib.loads((folder / "tests" / "example.toml").read_text()))


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("key", ["license", "urls", "classifiers", "description"])
def test_what_the_pyproject_of_a_plugin_lacks_is_named(key, cli):
    folder, _ = make(cli, "env")
    place = folder / "pyproject.toml"
    header = "[project.urls]" if key == "urls" else f"{key} = "
    place.write_text(place.read_text().replace(f"\n{header}", f"\n{header.replace(key, 'keywords-of-' + key)}"))
    with pytest.raises(AssertionError, match=f"{key} in the pyproject.toml of {folder.name}"):
        tree.test_every_plugin_says_who_it_is(folder)


@pytest.mark.usefixtures("root")
def test_a_new_plugin_of_every_kind_is_clean_by_the_rules_of_the_repository(cli):
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    for kind in SUMMARIES:
        make(cli, kind)
    for command in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = subprocess.run([ruff, *command, "plugins"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_only_the_root_of_a_checkout_has_plugins_of_the_repository(cli, root):
    arguments = ("plugins", "new", "my-env", "--kind", "env", "--of-rlcore")
    assert "leave --folder out" in cli(*arguments, "--folder", "elsewhere").err
    (root / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    outcome = cli(*arguments)
    assert outcome.code == 2
    assert f"{str(root)!r} is not its root; go there, or leave the flag out" in outcome.err
    assert not list((root / "plugins").iterdir())
