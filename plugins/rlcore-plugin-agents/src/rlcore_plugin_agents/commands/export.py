"""`rlcore export`: the policy of a trained run as one file."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlcore.cli import Answer, add_json, trust_argument
from rlcore_plugin_agents.commands.arguments import add_best

# in the place of `rlcore_plugin_agents.formats.FORMATS`, which imports torch
FORMATS: Final = ("torch-export", "onnx", "safetensors")


@dataclass(frozen=True)
class Exported:
    """A policy as a file.

    Attributes:
        run: the folder of the run, or of one checkpoint.
        format: of the file.
        file: its path.
        bytes: its size.
    """

    run: str
    format: str
    file: str
    bytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore export`."""
    parser.description = "Write the policy of a trained run into one file, with its transforms inside."
    parser.add_argument("run", metavar="RUN", help="a run folder, or the folder of one checkpoint")
    parser.add_argument("--format", required=True, choices=FORMATS, help="of the file")
    add_best(parser)
    parser.add_argument("--output", metavar="FILE", help="default: policy.pt2, .onnx or .safetensors in RUN")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is there")
    parser.add_argument("--policy", metavar="NAME", help="of a run with several policies: which of them")
    trust_argument(parser)
    add_json(parser, Exported)


def run(options: argparse.Namespace) -> Answer:
    """Export, and answer what was written."""
    from rlcore_plugin_agents.exporting import export_agent

    output = None if options.output is None else Path(options.output)
    file = export_agent(
        Path(options.run),
        options.format,
        output,
        options.best,
        options.overwrite,
        options.trust,
        options.policy,
    )
    exported = Exported(options.run, options.format, str(file), file.stat().st_size)
    return Answer(exported, f"{file}: {exported.bytes:,} bytes; acts as the agent of {options.run} does\n")
