"""The components of the core keep the contracts of their kinds; and nothing in this repository goes without one."""

import importlib
import tomllib
from pathlib import Path

import pytest
from rlcore_plugin_testing.contracts import (
    ComponentContract,
    HookContract,
    PluginContract,
)

from rlcore.plugins.host import PluginHost

ROOT = Path(__file__).parents[2]
TREE = [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]


class TestCore(PluginContract):
    plugin = "core"


class TestProgressBar(HookContract):
    use = "progress-bar"
    transient = ("_bar", "_shown_at")


class TestConsoleTable(HookContract):
    use = "console-table"
    transient = ("_shown_at",)


class TestRewardClip(HookContract):
    use = "reward-clip"
    config = {"limit": 0.5}


# nothing goes without


def entry_points(pyproject):
    return list(tomllib.loads(pyproject.read_text())["project"]["entry-points"]["rlcore"])


PLUGINS = [name for pyproject in TREE for name in entry_points(pyproject)]


@pytest.fixture(scope="module")
def suites():
    """Every contract suite of the repository: those here, and those of the plugins."""
    files = [Path(__file__), *sorted(ROOT.glob("plugins/*/tests/test_contracts.py"))]
    modules = [importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts)) for file in files]
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
        "the suite of their kind in tests/test_contracts.py of the plugin"
    )


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_plugin_has_a_contract_test(plugin, suites):
    tested = {suite.plugin for suite in suites if issubclass(suite, PluginContract)}
    assert plugin in tested, f"plugin {plugin!r} has no subclass of PluginContract in its tests"
