"""Checkpoints on disk: commit a snapshot so that a crash at any point loses nothing acknowledged; keep some, load one.

A checkpoint is a folder under a new name: the back end's files, `state.json` with the structure, and `manifest.json`,
written last, with sizes and checksums. The file formats are the back ends'.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import xxhash

from rlcore.errors import StorageError
from rlcore.progress import Every, Progress
from rlcore.run_folder import sync_folder
from rlcore.snapshot import Snapshot, training_digest
from rlcore.state_tree import unflatten
from rlcore.types import Checkpointer

log = logging.getLogger(__name__)

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
STATE: Final = "state.json"
LATEST: Final = "latest"
_PARTIAL: Final = ".partial-"
_TRASH: Final = ".trash-"


@dataclass(frozen=True)
class Entry:
    """A committed checkpoint."""

    path: Path
    frames: int
    manifest: Mapping[str, Any] = field(repr=False)

    @property
    def evaluation(self) -> float | None:
        """Mean return of the evaluation made at the same frame, if there was one."""
        value = self.manifest["evaluation"]
        return None if value is None else float(value)


@dataclass(frozen=True)
class Facts:
    """What the manifest of a checkpoint says about its state.

    Attributes:
        owners: component name to the distribution that wrote its state.
        observers: the components that watch a run and do not change it.
        versions: of everything installed that the run uses.
        domain: what the bits of a run depend on, see `exactness.py`.
        inexact: why a resume from here does not give the bits of an uninterrupted run; empty when it does.
    """

    owners: Mapping[str, str] = field(default_factory=dict)
    observers: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    domain: Mapping[str, str] = field(default_factory=dict)
    inexact: tuple[str, ...] = ()

    def in_manifest(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the entries of the manifest."""
        digests = snapshot.digests()
        return {
            "owners": {name: self.owners.get(name, "") for name in snapshot.tree},
            "versions": dict(self.versions),
            "domain": dict(self.domain),
            "exact": not self.inexact,
            "inexact": list(self.inexact),
            "digests": digests,
            "digest": training_digest(digests, self.observers),
        }


class Store:
    """The checkpoints in one folder.

    Args:
        folder: made when the first checkpoint is saved.
        backend: writes and reads tensors.
        backend_name: recorded in the manifest; loading follows it.
        keep_last: how many of the newest are kept.
        keep_best: whether the one with the best evaluation is kept too.
    """

    def __init__(
        self, folder: Path, backend: Checkpointer, backend_name: str, keep_last: int = 2, keep_best: bool = True
    ) -> None:
        self.folder = folder
        self._backend = backend
        self._backend_name = backend_name
        self._keep_last = keep_last
        self._keep_best = keep_best

    def save(self, snapshot: Snapshot, facts: Facts) -> Path:
        """Write and commit a checkpoint, then prune.

        Args:
            snapshot: the state.
            facts: what the manifest says about it.

        Returns:
            The folder of the committed checkpoint.

        Raises:
            StorageError: it could not be written; nothing that was saved before is touched.
        """
        name = f"{snapshot.frames:012d}-{secrets.token_hex(3)}"
        partial = self.folder / f"{_PARTIAL}{name}"
        manifest = {
            "format": FORMAT,
            "id": name,
            "backend": self._backend_name,
            "progress": snapshot.progress,
            "evaluation": snapshot.evaluation,
            **facts.in_manifest(snapshot),
        }
        try:
            self._check_space(snapshot)
            self._write_files(partial, snapshot, manifest)
            os.rename(partial, self.folder / name)
            sync_folder(self.folder)
        except Exception as error:  # a back end may raise anything: torch.save says RuntimeError on a full disk
            _remove(partial)
            if isinstance(error, StorageError):
                raise
            raise StorageError(
                f"checkpoint at frame {snapshot.frames} could not be written to {self.folder}: "
                f"{type(error).__name__}: {error}; checkpoints saved before are untouched"
            ) from error
        try:
            self._point_to(name)
            self._prune()
        except OSError as error:
            log.warning("checkpoint %s is saved, but tidying up %s failed: %s", name, self.folder, error)
        return self.folder / name

    def _check_space(self, snapshot: Snapshot) -> None:
        """Refuse before writing what cannot fit."""
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True)
            sync_folder(self.folder.parent)
        needed = sum(tensor.nbytes for tensor in snapshot.tensors.values())
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise StorageError(
                f"checkpoint at frame {snapshot.frames} needs {needed:,} bytes, {self.folder} has {free:,} free; "
                "checkpoints saved before are untouched"
            )

    def _write_files(self, partial: Path, snapshot: Snapshot, manifest: dict[str, Any]) -> None:
        """Write everything into a folder that does not count yet, the manifest last."""
        partial.mkdir()
        self._backend.save(partial, snapshot.tensors)
        _write(partial / STATE, json.dumps(snapshot.tree))
        manifest["files"] = {file.name: _describe(file) for file in sorted(partial.iterdir())}
        manifest["checksum"] = _checksum(manifest)
        _write(partial / MANIFEST, json.dumps(manifest, indent=1))
        sync_folder(partial)

    def entries(self) -> list[Entry]:
        """Return the committed checkpoints whose manifest can be read, oldest first."""
        found, problems = self._scan()
        for problem in problems:
            log.warning("%s", problem)
        return found

    def _scan(self) -> tuple[list[Entry], list[str]]:
        """Return the readable checkpoints, oldest first, and what is wrong with the others."""
        found, problems = [], []
        for path in sorted(self.folder.glob("[0-9]*-*")):
            try:
                manifest = read_manifest(path)
            except StorageError as error:
                problems.append(str(error))
                continue
            found.append(Entry(path, int(manifest["progress"]["frames"]), manifest))
        return sorted(found, key=lambda entry: (entry.frames, entry.path.stat().st_mtime_ns)), problems

    def is_empty(self) -> bool:
        """Return whether no checkpoint was ever committed here, not even one that is damaged."""
        return not any(self.folder.glob("[0-9]*-*"))

    def best(self) -> Entry | None:
        """Return the checkpoint with the best evaluation, or None when none was evaluated."""
        evaluated = [entry for entry in self.entries() if entry.evaluation is not None]
        return max(evaluated, key=lambda entry: (entry.evaluation, entry.frames), default=None)

    def load(self, entry: Entry) -> dict[str, Any]:
        """Verify a checkpoint and return component name to state; tensors may be mapped files.

        Raises:
            StorageError: a file is missing, damaged or of a newer format; names it.
        """
        verify(entry)
        backend = entry.manifest["backend"]
        if backend != self._backend_name:
            raise StorageError(
                f"checkpoint {entry.path} was written by back end {backend!r}, the run uses {self._backend_name!r}; "
                f"set CKPT_BACKEND={backend}"
            )
        tree = json.loads((entry.path / STATE).read_text())
        tensors = self._backend.load(entry.path)
        return {component: unflatten(state, tensors) for component, state in tree.items()}

    def load_newest(self) -> tuple[Entry, dict[str, Any]]:
        """Return the newest checkpoint that verifies; a damaged one is skipped, aloud.

        Raises:
            StorageError: there is none.
        """
        entries, problems = self._scan()
        for problem in problems:
            log.warning("%s; it is left out", problem)
        for entry in reversed(entries):
            try:
                return entry, self.load(entry)
            except StorageError as error:
                problems.append(str(error))
                log.warning("%s; falling back to the checkpoint before", error)
        found = "; ".join(problems) or "there is none"
        raise StorageError(f"no checkpoint in {self.folder} can be loaded: {found}")

    def collect_leftovers(self) -> None:
        """Remove what a crash left of unfinished saves and prunes."""
        for prefix in (_PARTIAL, _TRASH):
            for path in self.folder.glob(f"{prefix}*"):
                _remove(path)
        for path in self.folder.glob(f".{LATEST}-*"):
            path.unlink(missing_ok=True)

    def _point_to(self, name: str) -> None:
        """Write the name of the newest checkpoint where people and scripts find it; a cache, never trusted."""
        temporary = self.folder / f".{LATEST}-{secrets.token_hex(3)}"
        temporary.write_text(name + "\n")
        os.replace(temporary, self.folder / LATEST)

    def _prune(self) -> None:
        entries = self.entries()
        keep = {entry.path for entry in entries[-self._keep_last :]}
        best = self.best() if self._keep_best else None
        if best is not None:
            keep.add(best.path)
        for entry in entries:
            if entry.path not in keep:
                trash = self.folder / f"{_TRASH}{entry.path.name}"
                os.rename(entry.path, trash)
                _remove(trash)


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a checkpoint folder.

    Raises:
        StorageError: it is missing, damaged or of a newer format.
    """
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        checksum = manifest.pop("checksum")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise StorageError(f"{path} is no checkpoint of rlcore: its {MANIFEST} cannot be read ({error})") from None
    if checksum != _checksum(manifest):
        raise StorageError(f"checkpoint {path} is damaged: the checksum of {MANIFEST} does not match")
    if manifest["format"] > FORMAT:
        raise StorageError(
            f"checkpoint {path} has format {manifest['format']}, this rlcore reads up to {FORMAT}; update rlcore"
        )
    return manifest  # type: ignore[no-any-return]


def verify(entry: Entry) -> None:
    """Compare every file of a checkpoint with its manifest.

    Raises:
        StorageError: a file is missing, is not a plain file, or has another size or checksum.
    """
    for name, expected in entry.manifest["files"].items():
        file = entry.path / name
        if Path(name).name != name or file.is_symlink() or not file.is_file():
            raise StorageError(f"checkpoint {entry.path} is damaged: {name!r} is missing or not a plain file")
        found = _describe(file)
        if found != expected:
            raise StorageError(f"checkpoint {entry.path} is damaged: {name!r} is {found}, expected {expected}")


class CheckpointSchedule:
    """Decides when to save; remembers the best evaluation."""

    def __init__(self, every: Every, keep_best: bool) -> None:
        self.every = every
        self._keep_best = keep_best
        self._best: float | None = None

    def due(self, progress: Progress, evaluation: float | None) -> bool:
        """Return whether to save now: the interval has passed, or the evaluation made here is the best so far."""
        due = self.every.due(progress)
        if evaluation is not None and (self._best is None or evaluation > self._best):
            self._best = evaluation
            due = due or self._keep_best
        return due

    def state_dict(self) -> dict[str, Any]:
        """Return the best evaluation so far."""
        return {"best": self._best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the best evaluation so far."""
        self._best = state["best"]


def _remove(folder: Path) -> None:
    """Remove a folder of ours as far as possible; what is left is collected at the next start."""
    shutil.rmtree(folder, ignore_errors=True)


def _checksum(manifest: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(manifest, sort_keys=True).encode())


def _describe(file: Path) -> dict[str, Any]:
    digest = xxhash.xxh3_128()
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return {"size": file.stat().st_size, "xxh3": digest.hexdigest()}


def _write(file: Path, text: str) -> None:
    with file.open("w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
