"""`rlcore plugins order`: which hooks each loop point calls, in order."""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rlcore.cli import Answer, add_json
from rlcore.cli.arguments import override_arguments
from rlcore.hooks.specs import POINTS


@dataclass(frozen=True)
class HookOrder:
    """Which hooks each loop point calls.

    Attributes:
        points: name of the point to the hooks, in the order of their calls.
    """

    points: dict[str, list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore plugins order`."""
    parser.description = "Show which hooks each loop point calls, in order."
    parser.add_argument("config", metavar="CONFIG", help="a TOML file")
    override_arguments(parser)
    add_json(parser, HookOrder)


def run(options: argparse.Namespace) -> Answer:
    """Build the run in memory, and answer the hooks of each point."""
    from rlcore.config.file import read
    from rlcore.config.observers import add_observers
    from rlcore.config.sections import validate
    from rlcore.run.build import build

    raw = read(Path(options.config), options.set, trust=options.trust)
    add_observers(raw, options.disable)
    config = validate(raw, options.enable, options.disable)
    with closing(build(config, write=False)) as built:
        hooks = built.trainer.hooks
    points = {point: [str(each.hook) for each in hooks.implementations(point)] for point in POINTS}
    lines = [f"{point:<20} {', '.join(names) or '-'}" for point, names in points.items()]
    return Answer(HookOrder(points), "\n".join(lines) + "\n")
