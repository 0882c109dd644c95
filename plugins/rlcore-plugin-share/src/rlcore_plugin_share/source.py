"""What is to be pushed: the files of a run, a policy or a dataset, each with its checksum, and what stays behind."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rlcore.checkpoints import CheckpointEntry, scan, verify
from rlcore.errors import ConfigError, StorageError
from rlcore.files import LOCK_FILE, in_use, plain_file
from rlcore.run_folder import CHECKPOINTS, CONFIG_FILE, ID_FILE, read_config, read_status
from rlcore_plugin_share.kinds import KINDS, MADE, Kind, kind_of
from rlcore_plugin_share.leaks import Scan, written_out
from rlcore_plugin_share.manifest import MANIFEST, MOST_FILES, UNFINISHED, Entry, problem_of
from rlcore_plugin_share.places.base import PIECE

_TEXTS: Final = (".toml", ".csv", ".json", ".jsonl", ".md", ".txt", ".log")


@dataclass
class Source:
    """What is to be pushed.

    Attributes:
        kind: what it is.
        folder: that it is in.
        files: by path in the place that it is pushed to.
        checkpoint: of a run: the latest that is whole.
        left: a line about each file that stays behind.
        leaks: a line about each place with what looks like a secret.
    """

    kind: Kind
    folder: Path
    files: dict[str, Path]
    checkpoint: CheckpointEntry | None = None
    left: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Of the run, policy or dataset."""
        only = next(iter(self.files)) if self.kind is KINDS["policy"] else ""
        return only or self.folder.resolve().name

    def entries(self) -> dict[str, Entry]:
        """Return size and checksum of every file; what looks like a secret is noted in `leaks`.

        Raises:
            StorageError: a file cannot be read, or is a link.
        """
        config = self.config()
        look = Scan(config)
        self.leaks = [f"{CONFIG_FILE}: {key} is written out" for key in written_out(config)]
        entries = {}
        for name, path in self.files.items():
            entries[name], kinds = _examined(path, look)
            self.leaks += [f"{name}: {kind}" for kind in sorted(kinds)]
        return entries

    def config(self) -> dict[str, Any]:
        """Return the config of the run that it is, or that a policy lies in; empty of a dataset."""
        return {} if self.kind is KINDS["dataset"] else read_config(self.folder)


def source_of(path: Path, at_checkpoint: bool) -> Source:
    """Return what a folder or file is, as far as it can be pushed.

    Args:
        path: of a run folder, an exported policy or a dataset.
        at_checkpoint: of a run: its config and its latest checkpoint alone.

    Raises:
        ConfigError: it cannot be pushed; or it trains, and is not pushed at a checkpoint.
    """
    kind = kind_of(path)
    if at_checkpoint and kind is not KINDS["run"]:
        raise ConfigError(f"--at-checkpoint is for a run, and {str(path)!r} is a {kind.name}")
    if kind is KINDS["policy"]:
        if problem := problem_of(path.name, kind):
            raise ConfigError(f"{path.name!r} cannot be pushed: {problem}; rename it")
        return Source(kind, path.parent, {path.name: path})
    source = Source(kind, path, {})
    if kind is KINDS["run"]:
        if not at_checkpoint:
            _check_at_rest(path)
        whole = {entry.path.name: entry for entry in _whole_checkpoints(source)}
        source.checkpoint = max(whole.values(), key=lambda entry: (entry.reached, entry.manifest["time"]), default=None)
        if at_checkpoint:
            return _at_checkpoint(source)
        _gather(source)
        for name in [name for name in source.files if (of := _checkpoint_of(name)) and of not in whole]:
            del source.files[name]
    else:
        _gather(source)
    return source


def _check_at_rest(folder: Path) -> None:
    if in_use(folder) or read_status(folder).get("state") == "running":
        raise ConfigError(
            f"{str(folder)!r} trains, and its files change: wait for its end, stop it, or push its latest checkpoint "
            "alone with --at-checkpoint"
        )


def _at_checkpoint(source: Source) -> Source:
    if source.checkpoint is None:
        raise ConfigError(f"{str(source.folder)!r} has no checkpoint that is whole yet")
    place = source.checkpoint.path
    below = f"{CHECKPOINTS}/{place.name}"
    names = [CONFIG_FILE, ID_FILE, *(f"{below}/{file.name}" for file in sorted(place.iterdir()))]
    source.files = {name: source.folder / name for name in names if (source.folder / name).is_file()}
    source.left.append("what the run logged, and its other checkpoints")
    return source


def _whole_checkpoints(source: Source) -> Iterator[CheckpointEntry]:
    listing = scan(source.folder / CHECKPOINTS)
    source.left += listing.problems
    for entry in listing.entries:
        try:
            foreign = verify(entry)
        except StorageError as error:
            source.left.append(str(error))
        else:
            if foreign:
                source.left.append(f"{entry.path}: it also holds {foreign[0]!r}, which is not its own")
            else:
                yield entry


def _checkpoint_of(name: str) -> str:
    """Return the name of the checkpoint that a file belongs to; empty where it belongs to none."""
    above, _, below = name.partition("/")
    return below.partition("/")[0] if above == CHECKPOINTS and "/" in below else ""


def _gather(source: Source) -> None:
    """Note the files of a folder that may travel, and those that stay behind."""
    for place, folders, names in os.walk(source.folder):
        folders.sort()
        for path in (Path(place, name) for name in sorted([*names, *_links(place, folders)])):
            name = path.relative_to(source.folder).as_posix()
            if name in (*MADE, MANIFEST, UNFINISHED, LOCK_FILE):
                continue
            problem = "it is a link" if path.is_symlink() else problem_of(name, source.kind)
            if problem:
                source.left.append(f"{name}: {problem}")
            else:
                source.files[name] = path
    if len(source.files) > MOST_FILES:
        raise ConfigError(f"{str(source.folder)!r} has more than {MOST_FILES:,} files")


def _links(place: str, folders: Sequence[str]) -> list[str]:
    return [name for name in folders if Path(place, name).is_symlink()]


def _examined(path: Path, look: Scan) -> tuple[Entry, set[str]]:
    """Return size and checksum of a file, and what looks like a secret in it."""
    digest, size, rest, kinds = hashlib.sha256(), 0, b"", set[str]()
    try:
        with plain_file(path) as stream:
            while piece := stream.read(PIECE):
                digest.update(piece)
                size += len(piece)
                kinds |= look.kinds_in(rest + piece, path.suffix in _TEXTS)
                rest = piece[-look.overlap :]
    except (OSError, StorageError) as error:
        raise StorageError(f"{path} cannot be pushed: {error}") from error
    return Entry(size, digest.hexdigest()), kinds
