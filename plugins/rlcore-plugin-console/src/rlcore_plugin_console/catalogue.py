"""The runs below one folder: where they are, and a row about each, made again when its files change."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rlcore_plugin_reports import RunFiles, shown, state

from rlcore.errors import ConfigError
from rlcore.run_folder import CHECKPOINTS, CONFIG_FILE, leaves, reached_by
from rlcore_plugin_console.evaluations import Evaluations
from rlcore_plugin_console.growing import last_row

_SIGNED: Final = (CONFIG_FILE, "status.json", "metrics.csv", "evaluations.csv", "timings.csv", CHECKPOINTS)
# folders of runs may lie in folders, but nobody nests them this deep
_DEEPEST: Final = 4
_MOST_RUNS: Final = 5_000
_GONE: Final = "there is no such run in this folder any more"
# how long a first look may take before a reader gets what there is
_PATIENCE_SECONDS: Final = 0.4
_LOOK_EVERY_SECONDS: Final = 1.0
# of the time between two looks at the runs, what a look may take
_MOST_BUSY: Final = 0.02


class UnknownRunError(ConfigError):
    """There is no run of that name in the folder that is served."""


@dataclass
class _Entry:
    """What is kept of a run.

    Attributes:
        folder: of the run.
        evaluations: read as far as they were at the last look.
        signs: what is another when something of the run is; None before the first look.
        row: about it.
        config: its keys, dotted, with their values as text.
        written: the version of the rows in which this one was new.
    """

    folder: Path
    evaluations: Evaluations
    signs: Any = None
    row: dict[str, Any] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    written: int = 0


class Catalogue:
    """The runs below a folder. A run is asked for by its name here, and never by a path of somebody else.

    Args:
        folder: absolute, without links.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._next_look = 0.0
        self._pending = False
        self._born = secrets.token_hex(4)  # versions of another server are no versions of this one
        self._rows = self._configs = 0

    def names(self) -> list[str]:
        """Return the names of all runs: their folders relative to that of the catalogue, with `/` between the parts."""
        with self._lock:
            self._look()
            return list(self._entries)

    def folder_of(self, name: str) -> Path:
        """Return the folder of a run.

        Raises:
            UnknownRunError: there is none of that name.
        """
        with self._lock:
            if name not in self._entries:
                self._next_look = 0.0
                self._look()
            entry = self._entries.get(name)
        if entry is None:
            raise UnknownRunError(_GONE)
        return entry.folder

    def evaluations_of(self, name: str) -> Evaluations:
        """Return the evaluations of a run, with what was appended to them.

        Raises:
            UnknownRunError: there is none of that name.
        """
        self.folder_of(name)
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                raise UnknownRunError(_GONE)
            entry.evaluations.read()
        return entry.evaluations

    def look_again(self) -> None:
        """Look at the runs at the next question, however short the last one is ago."""
        with self._lock:
            self._next_look = 0.0

    def rows(self, known: str) -> dict[str, Any] | None:
        """Return the names of all runs, the rows that a reader lacks, and all configs if it lacks one; None if nothing.

        Args:
            known: the version that the reader got last.
        """
        with self._lock:
            self._look()
            version = f"{self._born}.{self._rows}.{self._configs}"
            if known == version:
                return None
            rows, configs = self._numbers(known)
            content: dict[str, Any] = {
                "version": version,
                "pending": self._pending,
                "names": list(self._entries),
                "rows": [entry.row for entry in self._entries.values() if entry.written > rows],
            }
            return content if configs == self._configs else content | self._shared_configs()

    def _numbers(self, version: str) -> tuple[int, int]:
        """Return the numbers of rows and configs in a version; -1 where it is not of this server."""
        match version.split("."):
            case [self._born, rows, configs] if rows.isdecimal() and configs.isdecimal():
                return int(rows[:18]), int(configs[:18])
        return -1, -1

    def _shared_configs(self) -> dict[str, Any]:
        """Return what all configs have in common, and what each has besides."""
        configs = {name: entry.config for name, entry in self._entries.items() if entry.config}
        first = next(iter(configs.values()), {})
        common = {key: value for key, value in first.items() if all(c.get(key) == value for c in configs.values())}
        each = {name: {k: v for k, v in config.items() if k not in common} for name, config in configs.items()}
        return {"common": common, "configs": each}

    def _look(self) -> None:
        begin = time.monotonic()
        if begin < self._next_look:
            return
        self._walk()
        self._pending = False
        for name, entry in self._entries.items():
            signs = _signs(entry.folder)
            # the status of a run whose process dies stays as it is, so that nothing but another look tells
            if signs == entry.signs and entry.row.get("state") != "running":
                continue
            if time.monotonic() - begin > _PATIENCE_SECONDS:
                self._pending = True
                break
            self._read(name, entry, signs)
        end = time.monotonic()
        wait = max(_LOOK_EVERY_SECONDS, (end - begin) / _MOST_BUSY)
        self._next_look = end if self._pending else end + wait

    def _read(self, name: str, entry: _Entry, signs: Any) -> None:
        run = RunFiles(entry.folder)
        try:
            if entry.signs is None or signs[0] != entry.signs[0]:
                self._configs += 1
                entry.config = {}
                kept = {key: value for key, value in run.config.items() if key != "versions"}
                entry.config = {key: shown(value) for key, value in leaves(kept).items()}
            entry.evaluations.read()
            row = _row(name, run, entry.evaluations, signs)
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
            # files that are made up may hold anything; they hide no other run
            row = {"name": name, "state": "unknown", "reason": f"its files cannot be read: {error!r:.200}"}
        if row != entry.row:
            self._rows += 1
            entry.row, entry.written = row, self._rows
        entry.signs = signs

    def _walk(self) -> None:
        folders = dict(
            sorted(_runs_below(self.folder, "", _DEEPEST), key=lambda pair: pair[1], reverse=True)[:_MOST_RUNS]
        )
        if folders.keys() != self._entries.keys():
            self._rows += 1
            self._configs += 1
            self._entries = {
                name: self._entries.get(name) or _Entry(self.folder / name, Evaluations(self.folder / name))
                for name in folders
            }
            for name, entry in self._entries.items():
                entry.row = entry.row or {"name": name, "state": "unknown"}


def _runs_below(folder: Path, name: str, depth: int) -> list[tuple[str, float]]:
    """Return name and time of the runs in a folder and its folders; links are not followed."""
    runs: list[tuple[str, float]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            # what begins with a dot is being made or removed, or is of other programs
            if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False) or not _is_text(entry.name):
                continue
            path = f"{name}/{entry.name}" if name else entry.name
            try:
                status = os.lstat(Path(entry.path, CONFIG_FILE))
                runs.append((path, status.st_mtime))
            except OSError:
                runs += _runs_below(Path(entry.path), path, depth - 1) if depth > 1 else []
    return runs


def _is_text(name: str) -> bool:
    """Return whether a name is UTF-8, so that a page can say it and ask by it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _signs(folder: Path) -> list[tuple[int, int, int] | None]:
    """Return what is another when a file of a run is."""
    signs: list[tuple[int, int, int] | None] = []
    for name in _SIGNED:
        try:
            status = os.lstat(folder / name)
            signs.append((status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError:
            signs.append(None)
    return signs


def _row(
    name: str, run: RunFiles, evaluations: Evaluations, signs: list[tuple[int, int, int] | None]
) -> dict[str, Any]:
    """Return what the list says of a run."""
    finite, now = evaluations.finite(), state(run)
    trained = [each.mean for place, each in finite.items() if place]
    return {
        "name": name,
        "state": now,
        "resumable": str(run.status.get("state", "")).endswith("resumable") or now == "finished",
        "reason": str(run.status.get("reason", ""))[:500],
        "clock": run.clock,
        "reached": max([reached_by(run.status), *finite, _last_place(run.folder)]),
        "total": run.total,
        "speed": _speed(run),
        "env": run.used("env"),
        "algorithm": run.used("loss"),
        "seed": shown(run.section("run").get("seed", "")),
        "best": max(trained, default=None),
        "last": finite[max(finite)].mean if finite else None,
        "changed": max(sign[0] for sign in signs if sign) // 1_000_000 if any(signs) else 0,
        "setting": hashlib.blake2b(run.setting.encode("utf-8", "replace"), digest_size=8).hexdigest(),
    }


def _last_place(folder: Path) -> int:
    row = last_row(folder / "metrics.csv")
    text = row.get("frames", row.get("updates", ""))
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _speed(run: RunFiles) -> float | None:
    """Return frames or updates per second as the run wrote them last; None where no logger wrote it."""
    speeds = run.timings.get(f"time/{run.clock}_per_second")
    return speeds[max(speeds)] if speeds else None


def as_json(content: Any) -> bytes:
    """Return content as JSON; what is no number in JSON is null."""
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_without_infinities(content), allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _without_infinities(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_infinities(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_infinities(value) for value in content]
    return None if isinstance(content, float) and not abs(content) < float("inf") else content
