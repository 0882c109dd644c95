"""How many small faults do the tests notice? Each mutant has one changed operator, constant or branch.

    python tests/mutants.py                              200 mutants from the core and the plugins
    python tests/mutants.py 50 --in rlcore/hooks         50 from one room
    python tests/mutants.py --seed 1 --rows rows.jsonl   goes on where these rows end
    python tests/mutants.py 50 --in rlcore/hooks --caught-in rows.jsonl    only those that tests noticed then

May tests go? Judge mutants by them alone, `--tests FILE::TEST --rows rows.jsonl`; then without them, `--caught-in`.

The mutants are drawn at random, each line of code with the same weight. The tests of its module, which tests/targets.py
names, run for each in a process of its own, to the first that fails. What fails without the mutant too does not count.
Processes that the tests start see the mutant as well, and no file changes.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
from tests.mutations import Mutation, compiles, lines_with_mutations  # noqa: E402

Targets = list[tuple[tuple[str, ...], tuple[str, ...]]]
# what no test should hold: files that others fill in or copy, and what itself proves others
LEFT_OUT = ("rlcore/templates", "rlcore/examples", "plugins/rlcore-plugin-testing")
LONGEST = 1800.0
# imports the changed source of one module, in every process that inherits the environment
HOOK = """
import importlib.machinery
import os


def install(loader=importlib.machinery.SourceFileLoader):
    original = loader.get_code

    def get_code(self, name):
        path = self.get_filename(name)
        if os.path.realpath(path) != os.environ.get("MUTANT_OF"):
            return original(self, name)
        with open(os.environ["MUTANT_SOURCE"], "rb") as file:
            return compile(file.read(), path, "exec", dont_inherit=True)

    loader.get_code = get_code


install()
"""


@dataclass(frozen=True)
class Mutant:
    """One change of one file, and what its tests said of it."""

    file: str
    line: int
    kind: str
    old: str
    new: str
    caught: bool | None = None
    by: str = ""
    seconds: float = 0.0

    @property
    def name(self) -> tuple[str, ...]:
        """What tells it from others."""
        return (self.file, str(self.line), self.kind, self.old, self.new)


@dataclass(frozen=True)
class Ending:
    """How tests ended: whether all passed in time, those that did not, and how long it took."""

    passed: bool
    late: bool
    failed: list[str]
    seconds: float


def room(file: str) -> str:
    """Return the room or the plugin of a file."""
    parts = Path(file).parts
    return "/".join(parts[:2]) if len(parts) > 2 else file


def module_of(file: str) -> str:
    """Return the name under which a file is imported."""
    parts = Path(file).with_suffix("").parts
    parts = parts[parts.index("src") + 1 :] if parts[0] == "plugins" else parts
    return ".".join(parts)


def sources(root: Path, inside: tuple[str, ...], left_out: tuple[str, ...]) -> Iterator[str]:
    """Yield the files of the core and of the plugins."""
    for path in sorted([*root.glob("rlcore/**/*.py"), *root.glob("plugins/*/src/**/*.py")]):
        file = path.relative_to(root).as_posix()
        if any(file.startswith(place) for place in inside or ("",)) and not file.startswith(left_out):
            yield file


def drawn(root: Path, files: list[str], number: int, seed: int) -> Iterator[tuple[Mutant, Mutation]]:
    """Draw lines, and one change of each."""
    places = [(file, *place) for file in files for place in lines_with_mutations((root / file).read_bytes())]
    chance = random.Random(seed)
    for file, line, changes in chance.sample(places, min(number, len(places))):
        change, source = chance.choice(changes), (root / file).read_bytes()
        if compiles(change.apply(source)):
            yield Mutant(file, line, change.kind, source[change.start : change.end].decode(), change.new), change


def targets_of(path: Path) -> Targets:
    """Read the table of modules and their tests."""
    spec = importlib.util.spec_from_file_location("targets", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["targets"] = module
    spec.loader.exec_module(module)
    targets: Targets = module.TARGETS
    return targets


def tests_of(module: str, targets: Targets, root: Path) -> tuple[str, ...]:
    """Return the tests of a module, its own first, then those of its package."""
    rows = [(package, tests) for packages, tests in targets for package in packages]
    closest = sorted(rows, key=lambda row: -len(row[0]))
    tests = [test for package, more in closest if f"{module}.".startswith(f"{package}.") for test in more]
    return tuple(dict.fromkeys(test for test in tests if (root / test).exists()))


class Recorder:
    """Write down, line by line, which tests failed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(report.nodeid, report.failed)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._write(f"collection of {report.nodeid}", report.failed)

    def _write(self, name: str, failed: bool) -> None:
        if failed:
            with self._path.open("a") as file:
                file.write(f"{name}\n")


class Judge:
    """Runs tests in processes that begin with torch imported."""

    def __init__(self, root: Path, folder: Path, bound: float) -> None:
        self._root, self._folder, self._bound = root, folder, bound
        self._seconds: dict[tuple[str, ...], float] = {}
        self._broken: dict[tuple[str, ...], set[str]] = {}
        (folder / "sitecustomize.py").write_text(HOOK)

    def judge(self, mutant: Mutant, change: Mutation, tests: tuple[str, ...]) -> Mutant:
        """Return the mutant with what its tests say."""
        if not tests:
            return Mutant(**asdict(mutant) | {"caught": False, "by": "no tests"})
        path = (self._root / mutant.file).resolve()
        (self._folder / "mutant.py").write_bytes(change.apply(path.read_bytes()))
        bound = max(self._bound, 3 * self._seconds.get(tests, 0.0))
        end = self.run(tests, bound, path)
        if end.passed:
            self._seconds[tests] = max(end.seconds, self._seconds.get(tests, 0.0))
        elif end.failed and not self._fails_because_of_it(end.failed[0], tests):
            return self.judge(mutant, change, tests)
        elif end.late and not end.failed and tests not in self._seconds:
            self._seconds[tests] = self.run(tests, LONGEST).seconds
            if 3 * self._seconds[tests] > bound:
                return self.judge(mutant, change, tests)
        by = end.failed[0] if end.failed else "" if end.passed else "the bound" if end.late else "the exit code"
        return Mutant(**asdict(mutant) | {"caught": not end.passed, "by": by, "seconds": round(end.seconds, 1)})

    def _fails_because_of_it(self, test: str, tests: tuple[str, ...]) -> bool:
        """Return whether a test passes without the mutant; one that does not is left out from here on."""
        if test.startswith("collection of") or self.run((test,), LONGEST).passed:
            return True
        self._broken.setdefault(tests, set()).add(test)
        print(f"left out, as it fails without a mutant: {test}", flush=True)
        return False

    def run(self, tests: tuple[str, ...], bound: float, mutated: Path | None = None) -> Ending:
        """Run tests in a process group of its own, up to `bound` seconds."""
        start = time.monotonic()
        record = self._folder / "failed"
        record.write_text("")
        child = os.fork()
        if child == 0:
            self._run_here(tests, record, mutated)
        code = None
        try:
            while code is None and time.monotonic() - start < bound:
                time.sleep(0.05)
                ended, status = os.waitpid(child, os.WNOHANG)
                code = os.waitstatus_to_exitcode(status) if ended else None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        if code is None:
            os.waitpid(child, 0)
        failed = record.read_text().splitlines()
        return Ending(code in (0, 5) and not failed, code is None, failed, time.monotonic() - start)

    def _run_here(self, tests: tuple[str, ...], record: Path, mutated: Path | None) -> None:
        """Be the process that runs the tests; it does not return."""
        code = 1
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
            signal.signal(signal.SIGQUIT, signal.SIG_DFL)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            if mutated is not None:
                paths = [str(self._folder), *filter(None, [os.environ.get("PYTHONPATH")])]
                os.environ |= {
                    "MUTANT_OF": str(mutated),
                    "MUTANT_SOURCE": str(self._folder / "mutant.py"),
                    "PYTHONPATH": os.pathsep.join(paths),
                }
                exec(HOOK, {})
            left_out = [f"--deselect={test}" for test in self._broken.get(tests, ())]
            options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
            folder, timeout = f"--basetemp={self._folder / 'base'}", f"--timeout={self._bound:g}"
            code = int(pytest.main([*tests, *left_out, *options, folder, timeout], plugins=[Recorder(record)]))
        finally:
            os._exit(code)


def summary(mutants: list[Mutant]) -> str:
    """Return the fraction of mutants that were caught, by room and of all."""
    rooms: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        rooms.setdefault(room(mutant.file), []).append(mutant)
    rows = [*sorted(rooms.items()), ("all", mutants)]
    return "\n".join(
        f"{name:<40} {sum(bool(one.caught) for one in some):>4} of {len(some):>4}  "
        f"{sum(bool(one.caught) for one in some) / max(len(some), 1):>6.1%}"
        for name, some in rows
    )


def read_rows(path: Path | None) -> dict[tuple[str, ...], Mutant]:
    """Read the mutants that were judged, by their names."""
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    mutants = [Mutant(**json.loads(line)) for line in lines]
    return {mutant.name: mutant for mutant in mutants}


def report(mutant: Mutant, rows: Path | None) -> None:
    """Print a judged mutant, and add its row."""
    verdict = "caught" if mutant.caught else "SURVIVES"
    old, new = (" ".join(text.split())[:60] for text in (mutant.old, mutant.new))
    print(f"{verdict:<8} {mutant.seconds:>6.1f} s {mutant.file}:{mutant.line} {old} -> {new}", flush=True)
    if rows is not None:
        with rows.open("a") as file:
            file.write(json.dumps(asdict(mutant)) + "\n")


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("number", type=int, nargs="?", default=200, help="how many mutants (200)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (0)")
    parser.add_argument("--in", dest="inside", action="append", default=[], help="only files below this path")
    parser.add_argument("--leave-out", action="append", default=[], help="no files below this path")
    parser.add_argument("--root", type=Path, default=HERE, help="another checkout, with its own .venv")
    parser.add_argument("--targets", default="tests/targets.py", help="the table of tests, in that checkout")
    parser.add_argument("--tests", nargs="+", help="judge by these, and not by those of the table")
    parser.add_argument("--bound", type=float, default=90.0, help="seconds for a test, and at least for a mutant (90)")
    parser.add_argument("--rows", type=Path, help="a file of JSON lines, from which it goes on")
    parser.add_argument("--caught-in", type=Path, help="judge those that are caught in these rows")
    return parser.parse_args(words)


def main() -> int:
    """Judge the mutants; the exit code is 1 when one that was caught in `--caught-in` survives."""
    asked: Any = arguments()
    root, rows = asked.root.resolve(), asked.rows.resolve() if asked.rows else None
    then = read_rows(asked.caught_in)
    python = root / ".venv" / "bin" / "python"
    if python.exists() and python.resolve().parent != Path(sys.prefix, "bin") and Path(sys.prefix) != root / ".venv":
        os.execv(python, [str(python), *sys.argv])
    os.chdir(root)
    sys.path[0:1] = [str(root)]
    targets = targets_of(root / asked.targets)
    for name in ("numpy", "torch", "tensordict", "gymnasium"):
        importlib.import_module(name)
    sys.modules["torch"].set_num_threads(1)
    for name in [name for name in sys.modules if name == "tests" or name.startswith("tests.")]:
        del sys.modules[name]  # those of `root` are others
    assert "rlcore" not in sys.modules, "the mutants would not be imported"
    judged = read_rows(rows)
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    judge, seen = Judge(root, folder, asked.bound), []
    files = list(sources(root, tuple(asked.inside), (*LEFT_OUT, *asked.leave_out)))
    try:
        for mutant, change in drawn(root, files, asked.number, asked.seed):
            if then and not (mutant.name in then and then[mutant.name].caught):
                continue
            if mutant.name in judged:
                seen.append(judged[mutant.name])
                continue
            tests = tuple(asked.tests or tests_of(module_of(mutant.file), targets, root))
            seen.append(judge.judge(mutant, change, tests))
            report(seen[-1], rows)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(summary(seen))
    return int(bool(then) and not all(mutant.caught for mutant in seen))


if __name__ == "__main__":
    sys.exit(main())
