"""The store of checkpoints in a folder: writes, removes and loads them; a crash at any point loses no saved one.

A checkpoint is a folder of its own: files of the back end with the tensors, `state.json` with the rest of the state,
and `manifest.json` with sizes and checksums, written last. `manifest.py` reads manifests.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rlcore.checkpoints.manifest import (
    FORMAT,
    MANIFEST,
    MOST_BYTES,
    STATE,
    CheckpointEntry,
    best,
    check_values,
    committed,
    order,
    read_json,
    render,
    scan,
    verify,
)
from rlcore.checkpoints.migrations import migrated_state
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.removal import PARTIAL, TRASH, clear, discard, remove
from rlcore.checkpoints.retention import DEFAULT, Retention, surplus
from rlcore.errors import FROM_OUTSIDE, StorageError, describe
from rlcore.files.durable import beside, describe_durable, sync_folder, write_durable
from rlcore.files.replacement import replace
from rlcore.types import Checkpointer, defines
from rlcore.types.heart import SYNC_PATIENCE, Heart, MovingSave

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.state.snapshot import Snapshot

log = logging.getLogger(__name__)

LATEST: Final = "latest"


class Store:
    """Writes, loads and removes the checkpoints in one folder.

    Args:
        folder: made when the first checkpoint is saved.
        backend: writes and reads tensors.
        backend_name: recorded in the manifest; a checkpoint of another back end is refused.
        retention: rules that keep checkpoints; by default the latest two, and the one with the best evaluation.
        check_place: raises a `StorageError` where the run folder was removed or replaced.

    Attributes:
        heart: beats while files are read and written, for the watchdog; the run puts its own here.
    """

    def __init__(
        self,
        folder: Path,
        backend: Checkpointer,
        backend_name: str,
        retention: Sequence[Retention] = DEFAULT,
        check_place: Callable[[], None] = lambda: None,
    ) -> None:
        self.folder = folder
        self._backend = backend
        self._backend_name = backend_name
        self._retention = retention
        self.check_place = check_place
        self.heart = Heart()
        self._anchored = False

    def save(self, snapshot: Snapshot, provenance: Provenance) -> Path:
        """Write and commit a checkpoint, then remove those that no rule keeps.

        Args:
            snapshot: the state.
            provenance: further entries of the manifest.

        Returns:
            The folder of the committed checkpoint.

        Raises:
            StorageError: it could not be written; earlier checkpoints are untouched.
        """
        # the random part tells a save apart from an earlier one of the same frame, which a damaged checkpoint may be
        name = f"{snapshot.reached:012d}-{secrets.token_hex(3)}"
        place = self.folder / f"{PARTIAL}{name}"
        self.check_place()
        try:
            self._make_folder()
            self._check_space(snapshot)
            with self.heart.save(place) as save:
                self._write_files(place, name, snapshot, provenance, save)
            # the commit: all files are synced before it, and the new name is synced after it
            os.rename(place, self.folder / name)
            place = self.folder / name
            sync_folder(self.folder)
        except FROM_OUTSIDE:
            raise
        except BaseException as error:  # a back end may raise anything: torch.save says RuntimeError on a full disk
            discard(place)
            if isinstance(error, StorageError):
                raise
            raise StorageError(
                f"checkpoint at {snapshot.place} could not be written to {self.folder}: "
                f"{describe(error)}; checkpoints saved before are untouched"
            ) from error
        try:  # the checkpoint is safe from here on, so an error in tidying up is no error of the save
            self._point_to(name)
            self._prune(name)
        except (OSError, StorageError) as error:
            log.warning("checkpoint %s is saved, but tidying up %s failed: %s", name, self.folder, error)
        return place

    def _make_folder(self) -> None:
        """Make the folder, and sync every folder above it, so that its path outlives a power cut.

        Folders that are there already are synced too: a killed process may have made them without a sync.
        """
        if self._anchored and self.folder.is_dir():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for parent in self.folder.resolve().parents:
            try:
                sync_folder(parent)
            except PermissionError:  # a folder of another user, so it is older than the run
                break
            if os.path.ismount(parent):  # above it is another file system
                break
        self._anchored = True

    def _check_space(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot that does not fit on the disk, before anything is written."""
        needed = snapshot.nbytes
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise StorageError(
                f"checkpoint at {snapshot.place} needs {needed:,} bytes, {self.folder} has {free:,} free; "
                "checkpoints saved before are untouched"
            )

    def _write_files(
        self, partial: Path, name: str, snapshot: Snapshot, provenance: Provenance, save: MovingSave
    ) -> None:
        """Write all files of a checkpoint into its partial folder, the manifest last."""
        partial.mkdir()
        # hashes the tensors in a thread while the back end writes them
        entries = beside(lambda: provenance.in_manifest(snapshot), snapshot.nbytes)
        self._backend.save(partial, snapshot.tensors)
        save.patience = SYNC_PATIENCE  # what follows are syncs, which show no progress while they wait for the disk
        write_durable(partial / STATE, _state_text(snapshot))
        manifest = {
            "format": FORMAT,
            "id": name,
            "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            "backend": self._backend_name,
            "progress": snapshot.progress,
            "evaluation": snapshot.evaluation,
            **entries(),
            "files": {file.name: describe_durable(file) for file in sorted(partial.iterdir())},
        }
        write_durable(partial / MANIFEST, render(manifest))
        sync_folder(partial)

    def entries(self) -> list[CheckpointEntry]:
        """Return the readable checkpoints, oldest first; log a warning for each of the others."""
        listing = scan(self.folder)
        for problem in listing.problems:
            log.warning("%s", problem)
        return listing.entries

    def is_empty(self) -> bool:
        """Return whether the folder holds no committed checkpoint, damaged ones included."""
        return not committed(self.folder)

    def best(self) -> CheckpointEntry | None:
        """Return the checkpoint with the best evaluation, or None when none was evaluated."""
        return best(self.entries())

    def load(self, entry: CheckpointEntry, into: Mapping[str, Tensor] = MappingProxyType({})) -> dict[str, Any]:
        """Verify a checkpoint and return component name to state; tensors may be mapped files.

        Args:
            entry: the checkpoint.
            into: tensors by their names in a snapshot. Where the back end can, it loads into these tensors, and the
                states hold them instead of copies.

        Raises:
            StorageError: a file is missing or damaged; the message names it.
        """
        with _readable(entry):
            return self._verified(entry, into).states()

    def snapshot(self, entry: CheckpointEntry) -> Snapshot:
        """Verify a checkpoint and return its snapshot; tensors may be mapped files.

        Raises:
            StorageError: a file is missing or damaged; the message names it.
        """
        with _readable(entry):
            return self._verified(entry, {})

    def _verified(self, entry: CheckpointEntry, into: Mapping[str, Tensor]) -> Snapshot:
        from rlcore.state.snapshot import Snapshot  # imports torch, which listing checkpoints does without

        self._check_backend(entry)
        foreign = verify(entry, self.heart.beat)
        if foreign:
            log.warning("checkpoint %s also holds %s, which is not its own and is ignored", entry.path, foreign)
        tree = migrated_state(_read_state(entry), entry.manifest["format"], FORMAT)
        tensors = dict(self._backend.load(entry.path))
        if defines(self._backend, Checkpointer.load_into):
            places = {name: tensor for name, tensor in into.items() if _fits(tensor, tensors.get(name))}
            for name, tensor in places.items():  # one call for each, so that the heart beats between large tensors
                self._backend.load_into(entry.path, {name: tensor})
                self.heart.beat()
            tensors |= places
        return Snapshot.read(tree, tensors, entry.manifest["progress"], entry.evaluation)

    def _check_backend(self, entry: CheckpointEntry) -> None:
        backend = entry.manifest["backend"]
        if backend.rpartition(":")[2] != self._backend_name:  # a script may have written `plugin:name`
            raise StorageError(
                f"checkpoint {entry.path} was written by back end {backend!r}, the run uses {self._backend_name!r}; "
                f"set CKPT_BACKEND={backend}, or write it again: rlcore ckpt convert RUN --to {self._backend_name}"
            )

    def load_newest(self, into: Mapping[str, Tensor] = MappingProxyType({})) -> tuple[CheckpointEntry, dict[str, Any]]:
        """Return the latest checkpoint that verifies, with its states; log an error for each damaged one before it.

        Args:
            into: tensors to load into, see `load`.

        Raises:
            StorageError: there is none. Or a later one is whole and needs another rlcore or back end: to go on from an
                older checkpoint would lose the work since.
        """
        listing = scan(self.folder)
        for problem in listing.problems:
            log.error("%s; it is left out", problem)
        if listing.newer:
            raise StorageError(f"{listing.newer[-1]}, or move it away to go on from an older checkpoint")
        problems = listing.problems
        for entry in reversed(listing.entries):
            self._check_backend(entry)
            try:
                return entry, self.load(entry, into)
            except StorageError as error:
                problems.append(str(error))
                log.error("%s; falling back to the checkpoint before", error)
        unfinished = len(list(self.folder.glob(f"{PARTIAL}*")))
        there_is_none = "there is none" + (f", only {unfinished} whose writing was cut off" if unfinished else "")
        raise StorageError(f"no checkpoint in {self.folder} can be loaded: {'; '.join(problems) or there_is_none}")

    def collect_leftovers(self) -> None:
        """Remove the remains of saves and removals that a crash cut off, as far as possible."""
        for pattern in (f"{PARTIAL}*", f"{TRASH}*", f".{LATEST}-*"):
            for path in self.folder.glob(pattern):
                clear(path)

    def _point_to(self, name: str) -> None:
        """Write the name of the latest checkpoint into the file `latest`, for people and scripts; not for resumes."""
        replace(self.folder / LATEST, name + "\n", durable=False)

    def _prune(self, newest: str) -> None:
        """Remove the checkpoints up to the newest that no rule keeps.

        A checkpoint of a later frame was damaged when this run began. It is left alone, and does not count as one of
        the latest: else it would push out checkpoints that can be loaded.
        """
        entries = self.entries()
        last = next((entry for entry in entries if entry.path.name == newest), None)
        if last is None:  # somebody took it away at once
            return
        for entry in surplus([entry for entry in entries if order(entry) <= order(last)], self._retention):
            remove(entry)


@contextmanager
def _readable(entry: CheckpointEntry) -> Iterator[None]:
    """Turn every error of reading a checkpoint into a `StorageError`: a manipulated file raises errors of any kind."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        raise StorageError(
            f"checkpoint {entry.path} cannot be read though its files are whole: {type(error).__name__}: {error}"
        ) from error


def _read_state(entry: CheckpointEntry) -> Any:
    try:
        return read_json(entry.path / STATE)[1]
    except StorageError as error:
        raise StorageError(f"checkpoint {entry.path} cannot be read: {STATE}: {error}") from None


def _state_text(snapshot: Snapshot) -> str:
    """Return the text of `state.json`.

    Raises:
        StorageError: it is larger than `read_json` accepts.
    """
    text = json.dumps(snapshot.tree)
    try:
        if len(text) > MOST_BYTES[STATE]:
            raise StorageError(f"it has {len(text):,} bytes, more than {MOST_BYTES[STATE]:,}")
        check_values(text.encode())
    except StorageError as error:
        raise StorageError(
            f"checkpoint at {snapshot.place}: the state without its tensors is too large: {error}; keep long "
            "lists of numbers as arrays or tensors"
        ) from None
    return text


def _fits(tensor: Tensor, saved: Tensor | None) -> bool:
    return saved is not None and tensor.dtype == saved.dtype and tensor.shape == saved.shape
