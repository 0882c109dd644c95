"""Power cuts: every state in which a disk may be found when real code is cut off at any of its file operations.

The rules are those of POSIX and no more: content of a file is certain at its last fsync, names in a folder at the last
fsync of the folder. What came later is there, or not, each on its own and in any order.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeAlias

from rlcore_plugin_testing.faults.watched import watched

Tree: TypeAlias = "bytes | tuple[tuple[str, Tree], ...]"
_NUMBERS: Final = itertools.count()
_unwatched_open: Final = open  # looking must not be an event


@dataclass(eq=False)
class _File:
    """A file: what it holds now, and what it held at its last fsync."""

    live: bytes = b""
    durable: bytes = b""
    number: int = field(default_factory=lambda: next(_NUMBERS))

    def may_hold(self) -> tuple[bytes, ...]:
        """Return every content that may be found: the old, the new, a part of the new, or zeros of its size."""
        if self.live == self.durable:
            return (self.live,)
        cut = self.live[: len(self.live) // 2]
        return tuple(dict.fromkeys((self.live, self.durable, b"", cut, bytes(len(self.live)))))


@dataclass(eq=False)
class _Folder:
    """A folder: its names now, at its last fsync, and what each name stood for in between."""

    live: dict[str, _File | _Folder] = field(default_factory=dict)
    durable: dict[str, _File | _Folder] = field(default_factory=dict)
    between: dict[str, list[_File | _Folder | None]] = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(_NUMBERS))

    def set(self, name: str, node: _File | _Folder | None) -> None:
        """Let a name stand for something else, or for nothing."""
        self.between.setdefault(name, []).append(node)
        if node is None:
            self.live.pop(name, None)
        else:
            self.live[name] = node

    def may_hold(self) -> dict[str, tuple[Any, ...]]:
        """Return for each name everything that it may be found to stand for, the latest first."""
        return {
            name: tuple(dict.fromkeys((*reversed(self.between.get(name, ())), self.durable.get(name))))
            for name in sorted({*self.durable, *self.between})
        }


@dataclass(frozen=True)
class CrashState:
    """One state in which the disk may be found.

    Attributes:
        event: the operation before or after which the power went.
        acknowledged: what was noted last before that, or None.
        tree: name to content or to a further tree.
    """

    event: str
    acknowledged: Any
    tree: Tree = field(repr=False)

    def write(self, folder: Path) -> None:
        """Make the state in a folder that does not exist yet."""
        _write(folder, self.tree)

    def __str__(self) -> str:
        return f"{self.event}, acknowledged: {self.acknowledged}\n" + "\n".join(_lines(self.tree))


@dataclass(frozen=True)
class _Moment:
    """What may be found at one moment: contents of each file, and for each name of each folder what it stands for."""

    event: str
    acknowledged: Any
    contents: Mapping[int, tuple[bytes, ...]]
    names: Mapping[int, Mapping[str, tuple[int | None, ...]]]

    def same(self, other: _Moment) -> bool:
        """Return whether nothing happened between two moments."""
        return (self.acknowledged, self.contents, self.names) == (other.acknowledged, other.contents, other.names)


class CrashRecorder:
    """Records what real code does inside one folder, and tells afterwards what a power cut could have left.

    Args:
        folder: exists, and counts as safely on disk. Operations outside of it are left alone.

    Example:
        with CrashRecorder(folder) as recorder:
            save()
            recorder.acknowledge("saved")
        for number, state in enumerate(recorder.states()):
            state.write(tmp_path / str(number))
            assert what_can_be_loaded(tmp_path / str(number)) ...
    """

    def __init__(self, folder: Path) -> None:
        self._root_path = Path(os.path.realpath(folder))
        self._root = _read(self._root_path)
        self._moments: list[_Moment] = []
        self._acknowledged: Any = None
        self._context = watched(folder, self)

    @property
    def events(self) -> list[str]:
        """Every operation, in order."""
        return [moment.event for moment in self._moments]

    def acknowledge(self, what: Any) -> None:
        """Note that from now on a power cut must not lose something."""
        self._acknowledged = what
        self._capture(f"acknowledged {what}")

    def states(self, most: int = 4096) -> Iterator[CrashState]:
        """Yield every state that differs from those before it, from the first operation to the last.

        Args:
            most: states of one moment; where there are more, so many are chosen, always the same.
        """
        seen: set[tuple[Any, Tree]] = set()
        for moment in self._moments:
            for tree in _trees(moment, self._root.number, most):
                key = (repr(moment.acknowledged), tree)
                if key not in seen:
                    seen.add(key)
                    yield CrashState(moment.event, moment.acknowledged, tree)

    def call(self, name: str, paths: tuple[Path, ...], perform: Callable[[], Any]) -> Any:
        """Perform a call, and record the moments before and after it."""
        event = f"{name} {' '.join(str(path.relative_to(self._root_path)) for path in paths)}"
        self._refresh()
        self._capture(f"before {event}")
        result = perform()
        self._apply(name, paths)
        self._refresh()
        self._capture(f"after {event}")
        return result

    def write(self, path: Path, content: bytes, perform: Callable[[bytes], int]) -> int:
        """Write."""
        return perform(content)

    def __enter__(self) -> CrashRecorder:
        self._capture("the beginning")
        self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, traceback)
        self._refresh()
        self._capture("the end")

    def _apply(self, name: str, paths: tuple[Path, ...]) -> None:
        if name in ("fsync", "fdatasync"):
            self._sync(self._find(paths[0]))
        elif name == "open":
            if self._find(paths[0]) is None and paths[0].exists():
                self._folder(paths[0]).set(paths[0].name, _File())
        elif name == "mkdir":
            self._folder(paths[0]).set(paths[0].name, _Folder())
        elif name in ("unlink", "remove", "rmdir"):
            self._folder(paths[0]).set(paths[0].name, None)
        elif name == "link":
            self._folder(paths[1]).set(paths[1].name, self._find(paths[0]))
        else:
            node = self._find(paths[0])
            self._folder(paths[1]).set(paths[1].name, node)
            self._folder(paths[0]).set(paths[0].name, None)

    def _sync(self, node: _File | _Folder | None) -> None:
        if isinstance(node, _File):
            node.durable = node.live
        elif node is not None:
            node.durable = dict(node.live)
            node.between.clear()

    def _find(self, path: Path) -> _File | _Folder | None:
        node: _File | _Folder | None = self._root
        for part in path.relative_to(self._root_path).parts:
            node = node.live.get(part) if isinstance(node, _Folder) else None
        return node

    def _folder(self, path: Path) -> _Folder:
        parent = self._find(path.parent)
        assert isinstance(parent, _Folder), f"{path} was made by something that is not watched"
        return parent

    def _refresh(self) -> None:
        """Take in what was written into files since the last event."""
        for path, node in _walk(self._root_path, self._root):
            if isinstance(node, _File):
                with _unwatched_open(path, "rb") as stream:
                    node.live = stream.read()

    def _capture(self, event: str) -> None:
        contents: dict[int, tuple[bytes, ...]] = {}
        names: dict[int, Mapping[str, tuple[int | None, ...]]] = {}
        todo: list[_File | _Folder] = [self._root]
        while todo:
            node = todo.pop()
            if node.number in contents or node.number in names:
                continue
            if isinstance(node, _File):
                contents[node.number] = node.may_hold()
                continue
            found = node.may_hold()
            names[node.number] = {
                name: tuple(None if choice is None else choice.number for choice in choices)
                for name, choices in found.items()
            }
            todo += [choice for choices in found.values() for choice in choices if choice is not None]
        moment = _Moment(event, self._acknowledged, contents, names)
        if not self._moments or not moment.same(self._moments[-1]):
            self._moments.append(moment)


def _trees(moment: _Moment, root: int, most: int) -> Iterator[Tree]:
    """Yield every tree of one moment; where there are more than `most`, the extremes and so many chosen at random."""
    every = list(itertools.islice(_enumerate(moment, root), most + 1))
    if len(every) <= most:
        yield from every
        return
    generator = random.Random(0)
    yield every[0]
    yield _tree(moment, root, lambda count: count - 1)
    for _ in range(most):
        yield _tree(moment, root, generator.randrange)


def _enumerate(moment: _Moment, root: int) -> Iterator[Tree]:
    """Yield every tree once for each way to decide what is open, counting through the decisions that it takes."""
    path: list[tuple[int, int]] = []
    while True:
        position = 0

        def decide(count: int) -> int:
            nonlocal position
            if position == len(path):
                path.append((0, count))
            position += 1
            return path[position - 1][0]

        yield _tree(moment, root, decide)
        while path and path[-1][0] + 1 == path[-1][1]:
            path.pop()
        if not path:
            return
        path[-1] = (path[-1][0] + 1, path[-1][1])


def _tree(moment: _Moment, root: int, decide: Callable[[int], int]) -> Tree:
    """Return one tree; `decide` picks one of so many options. A file with two names holds the same under both."""
    decided: dict[int, bytes] = {}

    def chosen(options: tuple[Any, ...]) -> Any:
        return options[0 if len(options) == 1 else decide(len(options))]

    def build(number: int) -> Tree:
        if number in moment.contents:
            if number not in decided:
                decided[number] = chosen(moment.contents[number])
            return decided[number]
        standing = ((name, chosen(options)) for name, options in moment.names[number].items())
        return tuple((name, build(found)) for name, found in standing if found is not None)

    return build(root)


def _walk(path: Path, folder: _Folder) -> Iterator[tuple[Path, _File | _Folder]]:
    for name, node in folder.live.items():
        yield path / name, node
        if isinstance(node, _Folder):
            yield from _walk(path / name, node)


def _read(path: Path) -> _Folder:
    """Return a folder as it is, everything in it certain."""
    found: dict[str, _File | _Folder] = {}
    for child in sorted(path.iterdir()):
        if child.is_dir():
            found[child.name] = _read(child)
        else:
            content = child.read_bytes()
            found[child.name] = _File(content, content)
    return _Folder(dict(found), dict(found))


def _write(path: Path, tree: Tree) -> None:
    if isinstance(tree, bytes):
        path.write_bytes(tree)
        return
    path.mkdir()
    for name, content in tree:
        _write(path / name, content)


def _lines(tree: Tree, indent: str = "  ") -> Iterator[str]:
    for name, content in tree if isinstance(tree, tuple) else ():
        if isinstance(content, bytes):
            yield f"{indent}{name}: {len(content)} bytes, {content[:20]!r}"
        else:
            yield f"{indent}{name}/"
            yield from _lines(content, indent + "  ")
