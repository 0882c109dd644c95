"""`rlcore skill`: where the skill is, or what it says."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib.resources import as_file, files

from rlcore.cli import Answer, add_json


@dataclass(frozen=True)
class Skill:
    """The skill for coding assistants.

    Attributes:
        folder: where it is, to copy or to link.
        text: of the skill itself.
    """

    folder: str
    text: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore skill`."""
    parser.description = "Print the folder of the skill for coding assistants, to copy or to link."
    parser.add_argument("--text", action="store_true", help="print the skill itself")
    add_json(parser, Skill)


def run(options: argparse.Namespace) -> Answer:
    """Answer the folder of the skill, or its text."""
    with as_file(files("rlcore_plugin_assistants") / "skill") as folder:
        skill = Skill(str(folder), (folder / "SKILL.md").read_text(encoding="utf-8"))
    return Answer(skill, f"{skill.text if options.text else skill.folder}\n")
