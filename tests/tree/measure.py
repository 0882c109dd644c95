"""Measure how large the core is and how its parts hang together: `python -m tests.tree.measure` prints a table."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

from tests.tree.test_imports import DOORS, FOR_ALL, MODULES, PACKAGE, ROOMS, files, imports_of, room_of

ROOT = PACKAGE.parent
CONFIG = ROOT / "examples" / "ppo-cartpole.toml"
# what follows one call: the files of the core that it enters, and the calls from a room into one above it
WALK = """
import json, sys
from pathlib import Path
import rlcore
entered, climbs, order = [], set(), json.loads(sys.argv[1])
package = str(Path(rlcore.__file__).parent) + "/"
def room(path):
    return path.partition("/")[0].removesuffix(".py")
def inner(code):
    return code.co_filename.removeprefix(package) if code.co_filename.startswith(package) else None
def follow(frame, event, _):
    path = inner(frame.f_code) if event == "call" else None
    if path is None or frame.f_code.co_name == "<module>":
        return
    if path not in entered:
        entered.append(path)
    caller = frame.f_back
    while caller is not None and inner(caller.f_code) is None:
        caller = caller.f_back
    origin = inner(caller.f_code) if caller else None
    if origin and order.get(room(path), -1) > order.get(room(origin), 99):
        climbs.add((origin, path))
"""
BUILD = WALK + "config = rlcore.load_config(sys.argv[2])\nsys.setprofile(follow)\nrlcore.build(config)\n"
TRAIN = WALK + (
    "from rlcore.cli import command_line\nsys.setprofile(follow)\n"
    "command_line.main(['train', sys.argv[2], '--quiet', '--set', 'run.total_frames=2048'])\n"
)
END = """sys.setprofile(None)
loaded = [module.__file__ for name, module in list(sys.modules.items()) if name.partition(".")[0] == "rlcore"]
print(json.dumps({"entered": entered, "climbs": sorted(climbs), "loaded": sorted(set(filter(None, loaded)))}))
"""
# names that say which part of a sentence a thing is, and not what it is
NO_NAMES = ("found", "seen", "before", "given", "taken", "own", "known")


def code_lines(path: Path) -> int:
    """Return how many lines of a file are code: no blanks, comments or docstrings."""
    text = path.read_text()
    empty = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(lines)


def walk(script: str) -> dict[str, list[str]]:
    """Follow what a script calls, in a process and a folder of its own."""
    order = {room: number for number, room in enumerate(ROOMS)}
    with tempfile.TemporaryDirectory() as folder:
        arguments = [sys.executable, "-c", script + END, json.dumps(order), str(CONFIG)]
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=True)
    walked: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return walked


def arrows() -> set[tuple[str, str]]:
    """Return which room imports which other."""
    between = set()
    for path in files():
        for _, name in imports_of(path):
            room = name.split(".")[1] if "." in name else "__init__"
            if room not in (room_of(path), *FOR_ALL, *DOORS) and room_of(path) not in DOORS:
                between.add((room_of(path), room))
    return between


def floors() -> int:
    """Return the length of the longest way down."""
    depth: dict[str, int] = {}
    for room, below in ROOMS.items():
        depth[room] = 1 + max((depth[other] for other in below.split()), default=0)
    return max(depth.values())


def protocols() -> tuple[int, int]:
    """Return how many classes are protocols, and how many of them have one member."""
    members = []
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
                members.append(sum(isinstance(part, ast.FunctionDef | ast.AnnAssign) for part in node.body))
    return len(members), members.count(1)


def words_of_documentation() -> int:
    """Return how many words the pages have, those that are generated apart."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if not {"_build", "reference"} & set(path.parts)]
    return sum(len(path.read_text().split()) for path in pages)


def assigned_names() -> Counter[str]:
    """Return how often each name is that of a variable or an argument."""
    names: Counter[str] = Counter()
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] += 1
            elif isinstance(node, ast.arg):
                names[node.arg] += 1
    return names


def importers() -> Counter[str]:
    """Return how many files import each module of the core."""
    return Counter(name for path in files() for name in {name for _, name in imports_of(path)})


def table() -> dict[str, str]:
    """Return what is measured, by its name."""
    core = {path: code_lines(path) for path in files()}
    lines = [line.strip() for path in core for line in path.read_text().splitlines()]
    order, between = list(ROOMS), arrows()
    back = sum(order.index(target) > order.index(source) for source, target in between)
    build, train = walk(BUILD), walk(TRAIN)
    loaded = [Path(path) for path in train["loaded"] if Path(path) in core]
    kinds, single = protocols()
    short = sum(len(path.read_text().splitlines()) < 50 for path in core if path.name != "__init__.py")
    lonely = sum(count == 1 for name, count in importers().items() if MODULES[name].name != "__init__.py")
    names = assigned_names()
    return {
        "core: files / code lines": f"{len(core):,} / {sum(core.values()):,}",
        "core: rooms / floors / arrows / that run back up": f"{len(ROOMS)} / {floors()} / {len(between)} / {back}",
        "imported of the core by a run of CartPole: files / code lines": (
            f"{len(loaded):,} / {sum(core[path] for path in loaded):,}"
        ),
        "build(config): files entered / climbs": f"{len(build['entered'])} / {len(build['climbs'])}",
        "rlcore train: files entered / climbs": f"{len(train['entered'])} / {len(train['climbs'])}",
        "protocols / with one member": f"{kinds} / {single}",
        "files under 50 lines / modules with one importer": f"{short} / {lonely}",
        "comments on their own line": f"{sum(line.startswith('#') for line in lines) / len(lines):.2%}",
        f"variables called {', '.join(NO_NAMES)}": str(sum(names[name] for name in NO_NAMES)),
        "words of documentation": f"{words_of_documentation():,}",
    }


if __name__ == "__main__":
    for name, value in table().items():
        print(f"{name:<66}{value}")
