"""The arguments of `rlcore init`; what it does is imported when it is called."""

from __future__ import annotations

import argparse


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


def run(options: argparse.Namespace) -> int:
    """Write a config or an example, or list the presets."""
    from rlcore_plugin_presets import init
    from rlcore_plugin_presets.example import write_example

    return write_example(options.example) if options.example else init.run(options)
