"""`rlcore plugins`: what is installed and provided, and which hooks each point calls."""

from __future__ import annotations

import argparse
import json
from contextlib import closing, suppress
from pathlib import Path
from time import perf_counter

from rlcore.cli.arguments import override_arguments
from rlcore.cli.parsing import Parser, add_plugin_commands
from rlcore.errors import MissingPluginError, PluginError, did_you_mean
from rlcore.hooks.resolution import marked
from rlcore.hooks.specs import POINTS
from rlcore.plugins.discovery import installed, version_conflict
from rlcore.plugins.host import PluginHost
from rlcore.plugins.known import lend


def add_arguments(parser: Parser) -> None:
    """Add what the command takes."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list what is installed, from metadata alone")
    listing.add_argument("--json", action="store_true", help="print JSON")
    show = actions.add_parser("show", help="show the components of one plugin and their config keys")
    show.add_argument("name", metavar="NAME", help="a plugin, as listed")
    order = actions.add_parser("order", help="show which hooks each loop point calls, in order")
    order.add_argument("config", metavar="CONFIG", help="a TOML file")
    override_arguments(order)
    add_plugin_commands(actions, "plugins")


def run(options: argparse.Namespace) -> int:
    """Run the action."""
    return {"list": _list, "show": _show, "order": _order}[options.action](options)


def _list(options: argparse.Namespace) -> int:
    rows = [
        {
            "name": plugin.name,
            "distribution": plugin.distribution,
            "version": plugin.version,
            "requires_rlcore": plugin.requires_rlcore,
            "problem": version_conflict(plugin),
        }
        for plugin in installed()
    ]
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    width = max(len(str(row["name"])) for row in rows)
    for row in rows:
        problem = f"  refused: {row['problem']}" if row["problem"] else ""
        print(f"{row['name']:<{width}}  {row['distribution']} {row['version']}{problem}")
    return 0


def _show(options: argparse.Namespace) -> int:
    names = {plugin.name for plugin in installed()}
    if options.name not in names:
        raise PluginError(f"no plugin {options.name!r} is installed{did_you_mean(options.name, names)}")
    host = PluginHost()
    began = perf_counter()
    host.load(options.name)
    print(f"{options.name} ({host.loaded[options.name]}), imported in {(perf_counter() - began) * 1000:.0f} ms")
    for provided in host.registry.provided:
        if provided.owner.plugin != options.name:
            continue
        component = provided.component
        print(f"  {component.kind} {component.name}: {component.summary}")
        if component.kind == "hook":
            points = [name for name in POINTS if name in marked(provided.target())]
            print(f"    points: {', '.join(points) or 'as its config says'}")
        for key, field in provided.schema().model_fields.items():
            default = "required" if field.is_required() else f"default {field.get_default(call_default_factory=True)!r}"
            print(f"    {key}: {default}. {field.description or ''}".rstrip())
    with suppress(MissingPluginError):
        for preset in lend("rlcore.cli", "presets_of")(host.loaded[options.name].distribution):
            print(f"  preset {preset.name}: {preset.about.summary}; rlcore init {preset.name}")
    return 0


def _order(options: argparse.Namespace) -> int:
    from rlcore.config.file import read
    from rlcore.config.observers import add_observers
    from rlcore.config.sections import validate
    from rlcore.run.build import build

    raw = read(Path(options.config), options.set, trust=options.trust)
    add_observers(raw, options.disable)
    config = validate(raw, options.enable, options.disable)
    with closing(build(config, write=False)) as built:
        hooks = built.trainer.hooks
    for point in POINTS:
        names = [str(implementation.hook) for implementation in hooks.implementations(point)]
        print(f"{point:<20} {', '.join(names) if names else '-'}")
    return 0
