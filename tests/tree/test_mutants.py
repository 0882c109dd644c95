"""The tool that judges the tests by mutants changes one thing, and knows the tests of every room and every plugin."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from tests import mutants
from tests.mutants import Mutant
from tests.mutations import mutations
from tests.targets import MORE, ROOT, TARGETS

SOURCES = [ROOT, *sorted((ROOT / "plugins").glob("*/src"))]
MUTANT = Mutant("rlcore/files/lock.py", 3, "constant", "1", "2")


def changed(source: str) -> set[str]:
    return {mutation.apply(source.encode()).decode() for mutation in mutations(source.encode())}


@pytest.mark.parametrize(("modules", "tests"), MORE, ids=lambda names: names[0])
def test_a_target_names_modules_and_tests_that_exist(modules, tests):
    for module in modules:
        path = module.replace(".", "/")
        places = [source / place for source in SOURCES for place in (f"{path}.py", f"{path}/__init__.py")]
        assert any(place.is_file() for place in places), f"there is no module {module}"
    for place in tests:
        assert (ROOT / place).exists(), f"there is no {place}"


def test_every_room_and_every_plugin_has_tests():
    files = [file for file in mutants.sources(ROOT, (), mutants.LEFT_OUT) if not file.endswith("__main__.py")]
    rooms = {mutants.room(file): mutants.module_of(file) for file in files}
    without = [room for room, module in rooms.items() if not mutants.tests_of(module, TARGETS, ROOT)]
    assert without == ["rlcore/version.py"]
    assert {f"plugins/{path.name}" for path in (ROOT / "plugins").iterdir()} - set(rooms) == {
        "plugins/rlcore-plugin-testing"
    }


def test_the_tests_of_a_module_come_before_those_of_its_room():
    targets = [(("rlcore.files",), ("tests/unit/files",)), (("rlcore.files.lock",), ("tests/unit/files/test_lock.py",))]
    assert mutants.tests_of("rlcore.files.lock", targets, ROOT) == ("tests/unit/files/test_lock.py", "tests/unit/files")
    assert mutants.tests_of("rlcore.files.locks", targets, ROOT) == ("tests/unit/files",)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b < c", {"a = (b <= c)"}),
        ("a = b is None", {"a = (b is not None)"}),
        ("a = b - c", {"a = (b + c)"}),
        ("a = b and c", {"a = (b or c)"}),
        ("a = not b", {"a = (b)"}),
        ("a = 1, True, 'text'", {"a = 2, True, 'text'", "a = 1, False, 'text'"}),
        ("a = {'key': b, c: d}", {"a = ({c: d})"}),
        ("a = [b for b in c if b]", {"a = [b for b in c if (not (b))]"}),
        (
            "if a:\n    b()\nelse:\n    c()",
            {"if (not (a)):\n    b()\nelse:\n    c()", "if a:\n    pass\nelse:\n    c()"},
        ),
        ("for a in b:\n    c()", {"for a in b:\n    pass"}),
        ('def a(b: int | None):\n    """Say."""\n    c()', {'def a(b: int | None):\n    """Say."""\n    return None'}),
        ("ü = 'ü' if ä else b", {"ü = 'ü' if (not (ä)) else b"}),
    ],
)
def test_a_mutant_has_one_changed_operator_constant_or_branch(source, expected):
    assert changed(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "A = B | C",
        "a: int | Literal[1]",
        "__all__ = ['a'] + b",
        "if TYPE_CHECKING:\n    import a",
        "log.warning('%s', a + 1)",
        "raise Error(f'{a + 1}')",
        "assert a > 1",
        "@dataclass(frozen=True)\nclass A(Protocol):\n    a: int = 1",
        "class A:\n    def b(self):\n        raise NotImplementedError",
        "isinstance(a, B | C)",
        "warn(a, stacklevel=2)",
    ],
)
def test_messages_and_what_only_types_say_have_no_mutants(source):
    assert changed(source) == set()


def test_the_draw_is_that_of_its_seed():
    def draw(seed):
        return [mutant for mutant, _ in mutants.drawn(ROOT, ["rlcore/files/lock.py"], 5, seed)]

    assert draw(1) == draw(1) != draw(2)
    assert len(draw(1)) == 5


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one module that nothing has imported, and a test of it in a process of its own."""
    (tmp_path / "doubled.py").write_text("def double(a):\n    return a * 2 if a else 0\n")
    (tmp_path / "test_doubled.py").write_text(
        "import subprocess, sys\n"
        "SCRIPT = 'import sys; sys.path[:0] = [\".\"]; import doubled; print(doubled.double(3))'\n"
        "def test_fails_anyway():\n    assert False\n"
        "def test_double():\n    assert subprocess.check_output([sys.executable, '-c', SCRIPT]) == b'6\\n'\n"
    )
    return tmp_path


def test_a_mutant_is_caught_by_what_passes_without_it_and_reaches_processes_of_tests(checkout, tmp_path_factory):
    script = """
import sys
from pathlib import Path
from tests.mutants import Judge, Mutant
from tests.mutations import mutations
root = Path(sys.argv[1])
judge = Judge(root, Path(sys.argv[2]), 60)
for change in mutations((root / "doubled.py").read_bytes()):
    judged = judge.judge(Mutant("doubled.py", change.line, change.kind, "", change.new), change, ("test_doubled.py",))
    print(change.new, judged.caught, judged.by, sep="|")
"""
    code = f"import os, sys\nsys.path.insert(0, {str(ROOT)!r})\nos.chdir({str(checkout)!r})\n{script}"
    folder = tmp_path_factory.mktemp("mutant")
    done = subprocess.check_output([sys.executable, "-c", code, str(checkout), str(folder)], text=True)
    lines = [line for line in done.splitlines() if "|" in line]
    by = "test_doubled.py::test_double"
    assert lines == [
        f"return None|True|{by}",
        f"(not (a))|True|{by}",
        f"(a / 2)|True|{by}",
        f"3|True|{by}",
        "1|False|",
    ]
    assert "left out, as it fails without a mutant: test_doubled.py::test_fails_anyway" in done


def test_rows_are_read_again_and_summed_up_by_room(tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    for mutant in (replace(MUTANT, caught=True), replace(MUTANT, line=4, caught=False)):
        mutants.report(mutant, rows)
    judged = mutants.read_rows(rows)
    assert judged[MUTANT.name].caught
    assert "SURVIVES" in capsys.readouterr().out
    assert [row.split() for row in mutants.summary(list(judged.values())).splitlines()] == [
        ["rlcore/files", "1", "of", "2", "50.0%"],
        ["all", "1", "of", "2", "50.0%"],
    ]
