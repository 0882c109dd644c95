"""The API reference has every public name, and shows docstrings as they are meant."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import rlcore
from rlcore import errors, types
from rlcore.plugins.known import lent_to

ROOT = Path(__file__).resolve().parents[2]
API = ROOT / "docs/reference/api"


def is_described_elsewhere(name: str) -> bool:
    return name in vars(errors) or (name in types.__all__ and getattr(types, name) is getattr(rlcore, name))


def test_every_public_name_is_described_once():
    """Or elsewhere, where it is a record or an error."""
    text = (API / "rlcore.md").read_text()
    described = re.findall(r"^\.\. auto\w+:: rlcore\.(\w+)$", text, re.MULTILINE)
    public = [name for name in rlcore.__all__ if name != "__version__" and not is_described_elsewhere(name)]
    own = [name for name in described if name not in lent_to("rlcore")]
    assert sorted(own) == sorted(public), "write the name into a section of docs/reference/api/rlcore.md"


@pytest.mark.parametrize(
    "module", ["rlcore.types", "rlcore.errors", "rlcore_plugin_testing", "rlcore.helpers", "rlcore.algorithms"]
)
def test_a_module_is_described_as_a_whole(module):
    page = re.split(r"[._]", module)[-1]
    assert f".. automodule:: {module}\n   :members:\n" in (API / f"{page}.md").read_text()


def test_docstrings_show_code_as_code(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(ROOT / "docs/reference"))
    monkeypatch.delitem(sys.modules, "api_docstrings", raising=False)
    from api_docstrings import with_literal_blocks

    # what follows "Called in" is code, and what is indented below "Args:" is not
    lines = ["Called in `a.py`:", "", "    f(*x)", "", "Takes *args.", "Args:", "    x: *y"]
    expected = ["Called in `a.py`::", "", "    f(*x)", "", r"Takes \*args.", "Args:", r"    x: \*y"]
    assert with_literal_blocks(lines) == expected
