"""What the commands answer with `--json`: the commands that do, and the JSON schema of the document of each."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from rlcore.cli.parsing import Parser


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        message: what, where, and what to do.
        file: the config that it is about.
        section: of the config.
        key: of the section.
        place: where the value is from, if not from that file itself; or the line where a file is no TOML.
        hint: what to do, where the message says it after a semicolon.
    """

    message: str
    file: str | None
    section: str | None
    key: str | None
    place: str | None
    hint: str | None


@dataclass(frozen=True)
class Failure:
    """An error that ended a command.

    Attributes:
        kind: class of the error, such as `InvalidConfig`.
        message: as it is printed.
        notes: whose part raised it, and in which call.
        problems: all that is wrong with a config; of any other error the one problem.
    """

    kind: str
    message: str
    notes: list[str]
    problems: list[Problem]


@dataclass(frozen=True)
class Document:
    """What a command prints with `--json`.

    Attributes:
        rlcore: version of rlcore.
        command: such as `ckpt list`; empty where the command line could not be read.
        schema: version of `data`; null where the command line could not be read.
        ok: whether the exit code is 0.
        code: the exit code.
        data: what the command answers; null where an error came first.
        error: what ended the command; null without one.
    """

    rlcore: str
    command: str
    schema: int | None
    ok: bool
    code: int
    data: Any
    error: Failure | None


def leaves(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands and actions below a parser that have no further actions, by name, such as `ckpt list`."""
    if isinstance(parser, Parser):
        parser.complete()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below: dict[str, argparse.ArgumentParser] = {}
            for command in action.choices.values():
                below |= leaves(command)
            return below
    return {parser.prog.partition(" ")[2]: parser}


def json_schema(answer: type) -> dict[str, Any]:
    """Return the JSON schema of what a command answers; every key is there, and no others are."""
    schema = TypeAdapter(answer).json_schema(mode="serialization")
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part:
            part |= {"required": [*part["properties"]], "additionalProperties": False}
    return schema
