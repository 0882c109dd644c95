"""The tables of the rooms: what belongs in each, as its docstring says, and what it imports, as the test has it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from docstrings import first_sentence
from tables import table

ROOT: Final = Path(__file__).resolve().parents[2]
IMPORTS: Final = ROOT / "tests/tree/test_imports.py"


def rooms() -> dict[str, str]:
    """Return what each room imports, from the ground up, as the test of imports has it."""
    for node in ast.parse(IMPORTS.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "ROOMS":
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    raise LookupError(f"{IMPORTS} has no table ROOMS")


def room_map() -> str:
    """Return the table of the rooms, with what belongs in each."""
    return table(["room", "what belongs in it"], [[_name(room), _belongs(room)] for room in rooms()])


def room_imports() -> str:
    """Return the table of the rooms, with what each imports besides `errors`."""
    return table(["room", "imports"], [[_name(room), ", ".join(imports.split())] for room, imports in rooms().items()])


def _name(room: str) -> str:
    return f"`{room}/`" if (ROOT / "rlcore" / room).is_dir() else f"`{room}.py`"


def _belongs(room: str) -> str:
    folder = ROOT / "rlcore" / room
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return first_sentence(ast.get_docstring(ast.parse(file.read_text())) or "")
