"""The reference says what the code says: generated parts are up to date, every point has a section that is true."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rlcore_plugin_testing import make_trainer

from rlcore import types
from rlcore.hooks.resolution import marked
from rlcore.hooks.specs import POINTS
from rlcore.plugins.component import KINDS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/reference"))

import interfaces  # noqa: E402
from docstrings import Caller, callers, markdown  # noqa: E402 - the generator of the reference is no package

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
    """Return the hook class in the file of a point."""
    names = runpy.run_path(str(ROOT / f"docs/reference/examples/{point}.py"))
    (hook,) = [value for value in names.values() if isinstance(value, type) and value.__module__ == "<run_path>"]
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


# the lines that call an interface


def lines_of(text: str) -> list[str]:
    """Return the lines that hold something, each with single spaces only and without what is for mypy."""
    return [" ".join(line.split("  # type: ")[0].split()) for line in text.splitlines() if line.strip()]


def missing(caller: Caller, source: str) -> list[str]:
    """Return the first lines of a caller that the source has not, in one piece and after those before."""
    found, where = lines_of(source), 0
    for piece in re.split(r"^\s*\.\.\.$", caller.lines, flags=re.MULTILINE):
        wanted = lines_of(piece)
        starts = [n for n in range(where, len(found)) if found[n : n + len(wanted)] == wanted]
        if not starts:
            return wanted
        where = starts[0] + len(wanted)
    return []


def documented() -> dict[str, str]:
    """Return every docstring that says who calls it, by file and name."""
    docs = {}
    for file in [*ROOT.glob("rlcore/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]:
        if "Called in `" in (text := file.read_text()):
            nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef | ast.FunctionDef))
            docs |= {f"{file.relative_to(ROOT)}::{node.name}": ast.get_docstring(node) or "" for node in nodes}
    return {name: doc for name, doc in docs.items() if "Called in `" in doc}


def test_every_point_and_interface_shows_the_lines_that_call_it():
    assert [name for name, point in POINTS.items() if not callers(point.doc)] == []
    shown_by_others = {"Group", "Part", "Hook", "HookObject", "PacedOptimizer"}  # called by plugins, or in many places
    assert {name for name, doc in interfaces.documented().items() if not callers(doc)} == shown_by_others


def is_protocol(value: type) -> bool:
    return getattr(value, "_is_protocol", False)


def test_every_kind_with_an_interface_has_a_section():
    assert set(interfaces.INTERFACES) == {*KINDS, "all"}
    classes = {name: value for name in types.__all__ if inspect.isclass(value := getattr(types, name))}
    written = {name for name, value in classes.items() if inspect.isabstract(value) or is_protocol(value)}
    parts = {name for name, value in classes.items() if issubclass(value, types.Part)}
    assert written | parts <= set(interfaces.documented()) | {
        "ScriptTrainer",
        "Trainer",
        "Stepping",
    }  # nobody writes one


def test_every_interface_of_a_kind_has_a_docstring_for_every_member():
    text = (ROOT / "docs/reference/interfaces.md").read_text()
    for found in (found for group in interfaces.INTERFACES.values() for found in group):
        assert f"### {found.__name__}\n" in text
        members = [value for name, value in vars(found).items() if not name.startswith("_") and callable(value)]
        assert [member.__name__ for member in members if not member.__doc__] == []


@pytest.mark.parametrize("name", documented())
def test_the_lines_that_a_docstring_shows_are_those_of_the_source(name):
    doc = documented()[name]
    shown = callers(doc)
    assert len(shown) == doc.count("Called in `"), "a colon and the lines that call follow the file"
    for caller in shown:
        gone = missing(caller, (ROOT / caller.file).read_text())
        assert not gone, (
            f"the docstring of {name} shows lines that {caller.file} does not have: {gone}. Copy them from there into "
            "the docstring; a line of three dots stands for lines that are left out"
        )


@pytest.mark.parametrize(
    ("shown", "gone"),
    [
        ("a = 1\n...\nc()", []),
        ("if c:\n    d()", []),
        ("a = 1\nc()", ["a = 1", "c()"]),
        ("d()\n...\na = 1", ["a = 1"]),
    ],
    ids=["with a gap", "in one piece", "lines between are not shown", "in another order"],
)
def test_lines_that_the_source_does_not_have_are_found(shown, gone):
    source = "a = 1\n\nb = 2\nc()\nfor x in y:\n    if  c:\n        d()\n"
    assert missing(Caller("file.py", shown), source) == gone


def test_a_docstring_becomes_markdown():
    doc = (
        "Does a thing.\n\nArgs:\n    one: of\n        two lines.\n    two: more.\n\nReturns:\n    The thing.\n\n"
        "Called in `a/b.py`:\n\n    f(x)\n    ...\n"
    )
    assert markdown(doc) == (
        "Does a thing.\n\nArguments:\n\n- `one`: of two lines.\n- `two`: more.\n\nReturns: the thing.\n\n"
        "Called in `a/b.py`:\n\n```text\nf(x)\n...\n```\n"
    )


def test_formulas_beside_each_other_are_apart_so_that_a_narrow_page_shows_them_whole():
    nodes = pytest.importorskip("docutils.nodes")  # comes with what builds the site
    import math_renderer

    page = []
    with pytest.raises(nodes.SkipNode):
        math_renderer.block(SimpleNamespace(body=page), nodes.math_block("", r"a = b \qquad c_t = d"))
    assert page[0].count("<math ") == 2


def test_a_subscript_stands_beside_a_letter_with_an_accent():
    pytest.importorskip("docutils.nodes")
    import math_renderer

    text = "".join(math_renderer.mathml(r"\hat q_t", as_block=False).split())
    assert '<msub><mover><mi>q</mi><mostretchy="false">\u02c6</mo></mover><mi>t</mi></msub>' in text
    assert "\u2061" in math_renderer.mathml(r"\log \alpha", as_block=False), "a character that XML has no name for"
