"""What a command answers: data, the same as text, and an exit code; with `--json` one JSON document says it."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import Any, Final

from rlcore.errors import notes_of
from rlcore.version import __version__

# how messages name the section and the key that they are about, and where a text that is not TOML ends to be it
_ABOUT: Final = re.compile(r"(?:.*?: )??\[([\w.-]+)\](?: ([\w.-]+)(?: = [^:]*)?:|:|) ", re.DOTALL)
_LINE: Final = re.compile(r"\(at (line \d+, column \d+)\)")


@dataclass(frozen=True)
class Answer:
    """What a command answers.

    Attributes:
        data: a dataclass of the type that the command names in `add_json`; None where an error came first.
        text: the data for people, with its last newline; empty where the command prints as it goes on, which is on
            stderr when it answers in JSON.
        code: exit code of the command.
        error: what ended the command, for whoever adds data to an error.
    """

    data: object = None
    text: str = ""
    code: int = 0
    error: BaseException | None = None


def add_json(parser: argparse.ArgumentParser, data: type, schema: int = 1) -> None:
    """Add `--json` to a command, or to an action of one.

    Args:
        parser: of what has no further actions.
        data: the dataclass that it answers with; its docstring is in the documentation.
        schema: version of that, which changes when a key goes or means something else.
    """
    parser.add_argument("--json", action="store_true", help="print one JSON document; what else is said goes to stderr")
    parser.set_defaults(answer=data, schema=schema, prog=parser.prog)


def document(options: argparse.Namespace, answer: Answer) -> str:
    """Return an answer as JSON; numbers that are not finite are null."""
    from pydantic_core import to_json  # what other commands do without

    content = {
        "rlcore": __version__,
        "command": options.prog.partition(" ")[2],
        "schema": options.schema,
        "ok": answer.code == 0,
        "code": answer.code,
        "data": answer.data,
        "error": None if answer.error is None else _error(answer.error),
    }
    return to_json(content, indent=1, inf_nan_mode="null", fallback=str).decode() + "\n"


def _error(error: BaseException) -> dict[str, Any]:
    """Return what an error says: its kind, its message, and what is wrong, one by one."""
    file = getattr(error, "path", None)
    problems = [_problem(text, file) for text in getattr(error, "problems", None) or [str(error)]]
    return {"kind": type(error).__name__, "message": str(error), "notes": notes_of(error), "problems": problems}


def _problem(text: str, file: object) -> dict[str, Any]:
    """Return a problem with what its text names: section, key, where the value is from, and what to do."""
    about, parts = _ABOUT.match(text), text.split("; ")[1:]
    places = [part.removeprefix("from ") for part in parts if part.startswith("from ")] + _LINE.findall(text)
    hints = [part for part in parts if not part.startswith(("found ", "from "))]
    return {
        "message": text,
        "file": file,
        "section": about and about[1],
        "key": about and about[2],
        "place": places[0] if places else None,
        "hint": "; ".join(hints) or None,
    }
