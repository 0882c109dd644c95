"""The arguments of the commands that use the policy of a trained run."""

from __future__ import annotations

import argparse
from typing import Any, Final

from rlcore.cli.arguments import positive, trust_argument

# in the place of `rlcore.agents.formats.FORMATS`, which imports torch
EXPORT_FORMATS: Final = ("torch-export", "onnx", "safetensors")


def evaluate(commands: argparse._SubParsersAction[Any]) -> None:
    """Add `rlcore evaluate`."""
    command = commands.add_parser("evaluate", help="evaluate a trained run")
    command.add_argument("run", metavar="RUN", help="a run folder")
    command.add_argument("--episodes", type=positive, metavar="N", help="default: as in the config of the run")
    command.add_argument("--seed", type=int, metavar="S", help="reset seed of the first episode")
    _agent_arguments(command)
    command.add_argument("--device", metavar="D", help="auto, cpu, cuda, cuda:N or mps; default: as in the config")
    command.add_argument("--video", metavar="FILE", help="write the first episode as an mp4 file")
    command.add_argument("--json", action="store_true", help="print JSON")


def watch(commands: argparse._SubParsersAction[Any]) -> None:
    """Add `rlcore watch`."""
    text = "show the policy of a trained run, in a window or as a video"
    command = commands.add_parser("watch", help=text)
    command.add_argument("run", metavar="RUN", help="a run folder")
    command.add_argument("--episodes", type=positive, default=1, metavar="N", help="default: 1")
    command.add_argument("--seed", type=int, default=10_000, metavar="S", help="of the first episode; default: 10000")
    _agent_arguments(command)
    command.add_argument("--video", metavar="FILE", help="write an mp4 file and open no window")


def _agent_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--best", action="store_true", help="the checkpoint with the best evaluation, not the latest")
    command.add_argument("--agent", metavar="FILE", help="play an exported file in the place of the checkpoint")
    command.add_argument(
        "--set", action="append", default=[], metavar="K=V", help="override a key of env or evaluator, or run.threads"
    )
    trust_argument(command)


def export(commands: argparse._SubParsersAction[Any]) -> None:
    """Add `rlcore export`."""
    text = "write the policy of a trained run into one file, with its transforms inside"
    command = commands.add_parser("export", help=text)
    command.add_argument("run", metavar="RUN", help="a run folder, or the folder of one checkpoint")
    command.add_argument("--format", required=True, choices=EXPORT_FORMATS, help="of the file")
    command.add_argument("--best", action="store_true", help="the checkpoint with the best evaluation, not the latest")
    command.add_argument("--output", metavar="FILE", help="default: policy.pt2, .onnx or .safetensors in RUN")
    command.add_argument("--overwrite", action="store_true", help="replace a file that is there")
    command.add_argument("--policy", metavar="NAME", help="of a run with several policies: which of them")
    trust_argument(command)
