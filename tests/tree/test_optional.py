"""What a part may have is asked through protocols; the code asks for attributes by name only where it must."""

import ast
from pathlib import Path

import pytest

from rlcore.types import foreign, optional

ROOT = Path(__file__).parents[2]
# goes down as more is asked through protocols, and never up
ASKED_BY_NAME = 182
PROTOCOLS = {name: value for module in (optional, foreign) for name, value in vars(module).items()}
PROTOCOLS = {name: value for name, value in PROTOCOLS.items() if getattr(value, "__module__", "").startswith("rlcore")}


def asked(source: str) -> list[int]:
    """Return the lines that ask for an attribute by its name."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("getattr", "hasattr")]


def test_no_more_attributes_are_asked_for_by_name_than_before():
    places = {path: asked(path.read_text()) for path in (ROOT / "rlcore").rglob("*.py")}
    count = sum(map(len, places.values()))
    assert count <= ASKED_BY_NAME, (
        f"{count} calls of getattr and hasattr, more than {ASKED_BY_NAME}: ask isinstance(part, ...) with a protocol "
        "of rlcore/types/optional.py, or of foreign.py for an object of another library"
    )


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_every_protocol_can_be_asked_for_and_is(name):
    protocol = PROTOCOLS[name]
    assert isinstance(object(), protocol) is False
    assert protocol.__doc__
    files = [path for room in ("rlcore", "plugins") for path in (ROOT / room).rglob("*.py")]
    others = [path for path in files if path.parent.name != "types"]
    assert any(name in path.read_text() for path in others), f"nothing asks for {name}"
