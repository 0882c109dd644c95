"""The reference says what the code says: generated parts are up to date, every point has a section that is true."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rlcore.hooks.resolution import marked
from rlcore.hooks.specs import POINTS
from rlcore.testing import make_trainer

ROOT = Path(__file__).resolve().parents[2]
HOOKS = ROOT / "docs/reference/hooks.md"


def test_generated_parts_are_up_to_date():
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/reference/generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (
        f"{done.stdout}{done.stderr}\nThe documentation differs from the code: make docs, or "
        "python docs/reference/generate.py"
    )


def sections() -> dict[str, str]:
    """Return heading to text of the examples in hooks.md."""
    parts = re.split(r"^### (\w+)$", HOOKS.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_point_has_a_section_in_order_and_nothing_else_has():
    assert list(sections()) == list(POINTS)


def example(point: str) -> type:
    """Return the hook class in the section of a point."""
    names: dict[str, object] = {}
    preamble = re.search(r"## Examples.*?```python\n(.*?)```", HOOKS.read_text(), re.DOTALL)[1]
    code = re.search(r"```python\n(.*?)```", sections()[point], re.DOTALL)[1]
    exec(preamble, names)
    before = set(names)
    exec(code, names)
    (hook,) = [value for name, value in names.items() if name not in before and isinstance(value, type)]
    return hook


@pytest.mark.parametrize("point", POINTS)
def test_the_example_of_a_point_runs(point, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hook = example(point)
    assert point in marked(hook)
    called = []

    original = getattr(hook, point)

    @functools.wraps(original)
    def counting(*arguments):
        called.append(point)
        return original(*arguments)

    monkeypatch.setattr(hook, point, counting, raising=True)
    trainer = make_trainer("run.total_frames=32", hooks=[hook()], folder=tmp_path)
    if point == "on_exception":
        monkeypatch.setattr(trainer.collector, "update_model", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            trainer.train()
    else:
        trainer.train()
    assert called
