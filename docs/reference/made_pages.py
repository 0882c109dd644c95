"""The pages that are made of the plugins alone: written when the site is built, and not held by the repository."""

from __future__ import annotations

import inspect
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import preset_tables
from docstrings import first_sentence, prose
from keys import default_of, type_of_field
from pydantic import BaseModel
from tables import table

from rlcore.plugins.catalogue import PREFIX, PUBLISHED
from rlcore.plugins.component import KINDS
from rlcore.plugins.host import PluginHost
from rlcore.plugins.registry import Provided

ROOT: Final = Path(__file__).resolve().parents[2]
COMPONENTS_PAGE: Final = ROOT / "docs/reference/components.md"
CATALOGUE_PAGE: Final = ROOT / "docs/reference/catalogue.md"
PLUGIN_PAGES: Final = ROOT / "docs/plugins"

_COMPONENTS: Final = """# Components

Everything that a config can name with `use`, by kind, with every key of its section. `rlcore plugins show NAME` prints
the same for one plugin, installed ones from elsewhere and those for tests included. Types are explained in
[the config](config.md#values). A key that several components of a kind have alike stands in the table of the kind;
the component says its default.
"""
_CATALOGUE: Final = """# Catalogue of plugins

The distributions of this repository, and what each provides. All share one version. A config that names a component of
a plugin that is not installed is answered with the command that installs it. `rlcore plugins search WORDS` searches
this table, and [an index of others](../howto/share.md#search-plugins) in the same way.
"""
_ELSEWHERE: Final = """`rlcore plugins list` shows what is installed on your machine, plugins of others included.
A plugin of somebody else is any package with an entry point in the group `rlcore`. [The first
plugin](../tutorial/first-plugin.md) makes one.

```{toctree}
:hidden:
:glob:

../plugins/*
```

## Presets

`rlcore init NAME` writes one; [a project](../howto/start-a-project.md) begins with it.
"""


class Key(NamedTuple):
    """What a key of a section is, whatever its default."""

    name: str
    type: str
    meaning: str


def made_pages() -> dict[Path, str]:
    """Return every page that is made of the plugins alone, by its place."""
    pages = {COMPONENTS_PAGE: components_page(), CATALOGUE_PAGE: catalogue_page()}
    for name in list(distributions())[1:]:
        readme = f"../../plugins/{name}/README.md"
        pages[PLUGIN_PAGES / f"{name}.md"] = f"# {name}\n\n```{{include}} {readme}\n:start-line: 1\n```\n"
    return pages


def is_made(page: Path) -> bool:
    """Return whether a page is made of the plugins alone."""
    return page in (COMPONENTS_PAGE, CATALOGUE_PAGE) or page.parent == PLUGIN_PAGES


@cache
def distributions() -> dict[str, dict[str, Any]]:
    """Return distribution name to the `project` table of its pyproject.toml, the core first."""
    files = [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]
    projects = [tomllib.loads(file.read_text())["project"] for file in files]
    return {project["name"]: project for project in projects}


def provided_by(project: dict[str, Any]) -> list[Provided]:
    """Return the components of a distribution of this repository."""
    plugins = project.get("entry-points", {}).get("rlcore", {})
    host = PluginHost()
    for plugin in plugins:
        host.load(plugin)
    return [entry for entry in host.registry.provided if entry.owner.plugin in plugins]


def catalogue_page() -> str:
    """Return the page of the distributions and the presets."""
    rows = []
    for name, project in distributions().items():
        kinds: dict[str, list[str]] = {}
        for entry in provided_by(project):
            kinds.setdefault(entry.component.kind, []).append(f"`{entry.component.name}`")
        provides = "; ".join(f"{kind} {', '.join(names)}" for kind, names in kinds.items())
        linked = f"[`{name}`](../plugins/{name}.md)" if name != "rlcore" else f"`{name}`"
        rows.append([linked, project["description"], provides])
    listing = table(["distribution", "what it is", "components"], rows)
    return "\n".join([_CATALOGUE, listing, _ELSEWHERE, preset_tables.every()])


def components_page() -> str:
    """Return the page of all components that are not for tests alone, a section per kind."""
    of_kind: dict[str, list[Provided]] = {kind: [] for kind in KINDS}
    for name, project in distributions().items():
        published = PUBLISHED.get(name.removeprefix(PREFIX))
        if published is None or not published.for_tests:
            for entry in provided_by(project):
                of_kind[entry.component.kind].append(entry)
    return "\n".join([_COMPONENTS, *(_kind(kind, entries) for kind, entries in of_kind.items())])


def _kind(kind: str, entries: Sequence[Provided]) -> str:
    """Return the section of a kind: the keys that several of its components have alike, and each component."""
    counts = Counter(key for entry in entries for key in _keys(entry.schema()))
    # of a name that means several things, what it means in most of them
    usual = {key.name: key for key, _ in reversed(counts.most_common())}
    shared = [key for key in counts if counts[key] > 1 and usual[key.name] == key]
    parts = [f"## {kind}\n"]
    if shared:
        rows = [[f"`{key.name}`", key.type, key.meaning] for key in shared]
        parts.append(f"Keys that several have:\n\n{table(['key', 'type', 'meaning'], rows)}")
    parts += [_component(entry, set(shared)) for entry in entries]
    return "\n".join(parts)


def _component(entry: Provided, shared: set[Key]) -> str:
    component, schema, target = entry.component, entry.schema(), entry.target()
    said = inspect.getdoc(target) if inspect.isclass(target) else None
    text = said or f"{component.summary}."
    owner = entry.owner.distribution
    # the page of a plugin tells the rest; the components of the core have none
    text = prose(text) if owner == "rlcore" else f"{first_sentence(text)} More: [{owner}](../plugins/{owner}.md)."
    defaults = {key: default_of(schema.model_fields[key.name]) for key in _keys(schema)}
    of_kind = [f"`{key.name}` {default}" for key, default in defaults.items() if key in shared]
    own = [[f"`{key.name}`", key.type, default, key.meaning] for key, default in defaults.items() if key not in shared]
    parts = [f"### {component.kind} `{component.name}`\n", f"{text}\n"]
    parts += [f"Keys of the kind: {', '.join(of_kind)}.\n"] if of_kind else []
    parts += [table(["key", "type", "default", "meaning"], own)] if own else []
    return "\n".join(parts)


def _keys(schema: type[BaseModel]) -> Iterator[Key]:
    for name, field in schema.model_fields.items():
        yield Key(name, type_of_field(field), field.description or "")
