"""`rlcore plugins show`: the components of one plugin, their config keys, and its presets."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from rlcore_plugin_presets.presets import presets_of

from rlcore.cli import Answer, add_json
from rlcore.errors import PluginError, did_you_mean
from rlcore.hooks.resolution import marked
from rlcore.hooks.specs import POINTS
from rlcore.plugins.discovery import installed
from rlcore.plugins.host import PluginHost
from rlcore.plugins.registry import Provided


@dataclass(frozen=True)
class ShownKey:
    """A key of the config section of a component.

    Attributes:
        key: its name.
        required: whether a config has to say it.
        default: null where it is required.
        meaning: in a sentence.
    """

    key: str
    required: bool
    default: Any
    meaning: str


@dataclass(frozen=True)
class ShownComponent:
    """A component of a plugin.

    Attributes:
        kind: of component, such as `loss`.
        name: as `use` names it.
        summary: in a line.
        points: which loop points a hook is called at; null of others, and of a hook whose config says it.
        keys: of its section.
    """

    kind: str
    name: str
    summary: str
    points: list[str] | None
    keys: list[ShownKey]


@dataclass(frozen=True)
class ShownPlugin:
    """A plugin, its components and its presets.

    Attributes:
        name: of the plugin.
        distribution: whose it is.
        version: of the distribution.
        components: in the order in which it names them.
        presets: name to summary; `rlcore init NAME` writes one.
    """

    name: str
    distribution: str
    version: str
    components: list[ShownComponent]
    presets: dict[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore plugins show`."""
    parser.description = "Show the components of one plugin and their config keys."
    parser.add_argument("name", metavar="NAME", help="a plugin, as listed")
    add_json(parser, ShownPlugin)


def run(options: argparse.Namespace) -> Answer:
    """Import the plugin, and answer what it provides."""
    names = {plugin.name for plugin in installed()}
    if options.name not in names:
        raise PluginError(f"no plugin {options.name!r} is installed{did_you_mean(options.name, names)}")
    host = PluginHost()
    began = perf_counter()
    host.load(options.name)
    owner = host.loaded[options.name]
    head = f"{options.name} ({owner}), imported in {(perf_counter() - began) * 1000:.0f} ms"
    provided = [provided for provided in host.registry.provided if provided.owner.plugin == options.name]
    presets = {preset.name: preset.about.summary for preset in presets_of(owner.distribution)}
    components = [_component(each) for each in provided]
    plugin = ShownPlugin(options.name, owner.distribution, owner.version, components, presets)
    return Answer(plugin, "\n".join([head, *_lines(plugin)]) + "\n")


def _component(provided: Provided) -> ShownComponent:
    component = provided.component
    keys = []
    for key, field in provided.schema().model_fields.items():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        keys.append(ShownKey(key, field.is_required(), default, field.description or ""))
    points = [name for name in POINTS if name in marked(provided.target())] if component.kind == "hook" else None
    return ShownComponent(component.kind, component.name, component.summary, points or None, keys)


def _lines(plugin: ShownPlugin) -> Iterator[str]:
    for component in plugin.components:
        yield f"  {component.kind} {component.name}: {component.summary}"
        if component.kind == "hook":
            yield f"    points: {', '.join(component.points or ()) or 'as its config says'}"
        for key in component.keys:
            yield f"    {key.key}: {'required' if key.required else f'default {key.default!r}'}. {key.meaning}".rstrip()
    yield from (f"  preset {name}: {summary}; rlcore init {name}" for name, summary in plugin.presets.items())
