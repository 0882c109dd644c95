"""The README of every plugin shows each component with every key that it has, and nothing that it does not have."""

import re
import tomllib
from pathlib import Path

import pytest

from rlcore.config.core import CheckpointConfig, RanksConfig
from rlcore.plugins.component import COMPONENT_SECTIONS
from rlcore.plugins.host import PluginHost

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))

KINDS = {section: kind for section, (kind, _) in COMPONENT_SECTIONS.items()} | {"ranks": "launcher"}
# the keys that the core has in the section of a component
CORE_KEYS = {"checkpointer": CheckpointConfig, "launcher": RanksConfig}


def plugins_of(folder):
    return list(tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"]["rlcore"])


def shown(folder):
    """(section, table) of every TOML block in a README; of a section that repeats, each."""
    blocks = re.findall(r"```toml\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    tables = [entry for block in blocks for entry in tomllib.loads(block).items()]
    return [(name, table) for name, value in tables for table in (value if isinstance(value, list) else [value])]


def fullest(folder):
    """(section, component) to the table with the most keys; others are examples."""
    by_length = sorted(shown(folder), key=lambda entry: len(entry[1]))
    return {(name, table["use"].rpartition(":")[2]): table for name, table in by_length}


def provided_by(folder):
    host = PluginHost()
    found = {}
    for plugin in plugins_of(folder):
        if not host.is_installed(plugin):
            pytest.skip(f"plugin {plugin!r} is not installed")
        host.load(plugin)
        found |= {(e.component.kind, e.component.name): e for e in host.registry.provided if e.owner.plugin == plugin}
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_readme_shows_every_component_with_every_key(folder):
    tables = {(KINDS[section], use): table for (section, use), table in fullest(folder).items()}
    provided = provided_by(folder)
    assert set(tables) == set(provided), "the README shows other components than the plugin provides"
    for place, entry in provided.items():
        keys = set(tables[place]) - {"use"}
        core = set(CORE_KEYS[place[0]].model_fields) if place[0] in CORE_KEYS else set()
        assert keys - core == set(entry.schema().model_fields), f"{entry}: the README shows the keys {sorted(keys)}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_readme_shows_the_defaults(folder):
    provided = provided_by(folder)
    for (section, use), table in fullest(folder).items():
        schema = provided[KINDS[section], use].schema()
        own = {key: value for key, value in table.items() if key in schema.model_fields}
        settings = schema.model_validate(own)
        for key, field in schema.model_fields.items():
            default = field.get_default(call_default_factory=True)
            if not field.is_required() and default not in (None, {}):
                assert getattr(settings, key) == default, f"{section}.{key}: the default is {default!r}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_readme_says_how_to_install_and_what_is_saved(folder):
    text = (folder / "README.md").read_text()
    assert f"pip install {folder.name}\n" in text
    assert "## In checkpoints" in text
    assert "## Limits" in text
