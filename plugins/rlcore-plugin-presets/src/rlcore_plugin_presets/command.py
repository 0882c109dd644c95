"""The arguments of `rlcore init`; what it does is imported when it is called."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

from rlcore.cli import Answer, add_json


@dataclass(frozen=True)
class ListedPreset:
    """A preset.

    Attributes:
        name: that `rlcore init` takes.
        algorithm: that it is of.
        summary: in a line.
        owner: whose it is.
        envs: ids that it is for, as `Ant-*`; none: any environment.
        actions: kind of the action space: `any`, `discrete` or `continuous`.
        measured: the returns that it reached, one measurement each.
        waits_for: distributions that have to be installed before.
    """

    name: str
    algorithm: str
    summary: str
    owner: str
    envs: list[str]
    actions: str
    measured: list[str]
    waits_for: list[str]


@dataclass(frozen=True)
class Begun:
    """What was written to begin with; with `--list`, what could be.

    Attributes:
        files: that were written, the one to train first.
        preset: that the config is from; null for an example.
        run: the folder of the run to come; null for an example.
        changes: what is otherwise than in the preset, for the spaces of the env.
        lacking: what has to be there before it trains; empty where nothing is.
        presets: with `--list`.
    """

    files: list[str] = field(default_factory=list)
    preset: str | None = None
    run: str | None = None
    changes: list[str] = field(default_factory=list)
    lacking: str = ""
    presets: list[ListedPreset] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore init`."""
    parser.description = "Write a config to begin with: a preset for an algorithm and an environment."
    parser.add_argument(
        "preset", metavar="PRESET", nargs="?", help="an algorithm, such as ppo, or one of its presets; default: asks"
    )
    parser.add_argument("--env", metavar="ID", help="id of the environment, such as CartPole-v1")
    parser.add_argument("--name", metavar="NAME", help="name of the run; default: algorithm and environment")
    parser.add_argument("--output", metavar="FILE", help="the config to write; default: NAME.toml")
    parser.add_argument("--example", metavar="NAME", help="write this example instead, such as ppo-cartpole")
    parser.add_argument("--list", action="store_true", help="list the presets: for what, and what they reached")
    add_json(parser, Begun)


def run(options: argparse.Namespace) -> Answer:
    """Write a config or an example, or list the presets."""
    from rlcore_plugin_presets import init
    from rlcore_plugin_presets.example import write_example

    return write_example(options.example) if options.example else init.run(options)
