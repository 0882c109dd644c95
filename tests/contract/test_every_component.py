"""Nothing that a plugin of this repository provides goes without its contract."""

import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest

from rlcore.plugins.host import PluginHost
from rlcore.testing.contracts import ComponentContract, PluginContract

ROOT = Path(__file__).parents[2]
TREE = [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]


def entry_points(pyproject):
    return list(tomllib.loads(pyproject.read_text())["project"]["entry-points"]["rlcore"])


PLUGINS = [name for pyproject in TREE for name in entry_points(pyproject)]


def import_test(file):
    """Import a test file under a name of its own."""
    name = f"contract_of_{file.parents[1].name.replace('-', '_')}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def suites():
    """Every class in the tests of the tree that is a contract suite."""
    files = [*sorted((ROOT / "tests" / "contract").glob("test_*.py")), *sorted(ROOT.glob("plugins/*/tests/test_*.py"))]
    modules = [import_test(file) for file in files if file != Path(__file__) and "catch" not in file.name]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    return [value for value in classes if value.__name__.startswith("Test")]


@pytest.fixture(scope="module")
def host():
    return PluginHost()


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_component_has_a_contract_test(plugin, suites, host):
    if not host.is_installed(plugin):
        pytest.skip(f"plugin {plugin!r} is not installed")
    host.load(plugin)
    tested = {(s.kind, s.use) for s in suites if issubclass(s, ComponentContract)}
    provided = [entry.component for entry in host.registry.provided if entry.owner.plugin == plugin]
    missing = [
        f"{part.kind} {part.name!r}"
        for part in provided
        if not tested & {(part.kind, part.name), (part.kind, f"{plugin}:{part.name}")}
    ]
    assert not missing, (
        f"these components of plugin {plugin!r} have no contract test: {', '.join(missing)}; write a subclass of "
        "the suite of their kind in the plugin's tests"
    )


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_plugin_has_a_contract_test(plugin, suites):
    tested = {suite.plugin for suite in suites if issubclass(suite, PluginContract)}
    assert plugin in tested, f"plugin {plugin!r} has no subclass of PluginContract in its tests"
