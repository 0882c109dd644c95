"""`rlcore ckpt`: the checkpoints of a run: list, verify, show, prune and convert them.

Only converting needs torch and plugins.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlcore.checkpoints import (
    Best,
    CheckpointEntry,
    Latest,
    best,
    committed,
    read_manifest,
    remove,
    scan,
    surplus,
    verify,
)
from rlcore.cli import Answer, add_json, positive
from rlcore.errors import ConfigError, StorageError
from rlcore.files import Lock
from rlcore.run_folder import CHECKPOINTS, check_is_run
from rlcore_plugin_reports.commands.ckpt_answers import (
    Checkpoints,
    ConvertedCheckpoint,
    ListedCheckpoint,
    PrunedCheckpoints,
    ShownCheckpoint,
    VerifiedCheckpoint,
    VerifiedCheckpoints,
)
from rlcore_plugin_reports.terminal import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `rlcore ckpt`, with their arguments."""
    parser.description = "List, verify, show, prune or convert the checkpoints of a run."
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    made = {}
    for name, data, text in (
        ("list", Checkpoints, "list the checkpoints, the latest first"),
        ("verify", VerifiedCheckpoints, "compare every file with its checksum; exit code 5 when one is damaged"),
        (
            "show",
            ShownCheckpoint,
            "show what a checkpoint says about itself: components, hashes, versions, why it is not exact",
        ),
        ("prune", PrunedCheckpoints, "remove old checkpoints; the latest that is whole and the best one stay"),
        (
            "convert",
            ConvertedCheckpoint,
            "write a checkpoint again by another back end, with the same hashes; the old one stays",
        ),
    ):
        made[name] = actions.add_parser(name, help=text)
        made[name].add_argument("run", metavar="RUN", help="a run folder")
        add_json(made[name], data)
    for name, default in (("verify", "all"), ("show", "the latest"), ("convert", "the latest")):
        made[name].add_argument(
            "checkpoint", metavar="ID", nargs="?", help=f"name, its beginning, or frame; default: {default}"
        )
    made["prune"].add_argument(
        "--keep-last", type=positive, default=2, metavar="N", help="how many of the latest to keep; default: 2"
    )
    made["convert"].add_argument("--to", required=True, metavar="BACKEND", help="torch, torchsnapshot, dcp or another")
    made["prune"].add_argument("--dry-run", action="store_true", help="say what would be removed, remove nothing")


def run(options: argparse.Namespace) -> Answer:
    """Run the action."""
    folder = Path(options.run)
    if not (folder / CHECKPOINTS).is_dir():
        check_is_run(folder)
        raise StorageError(f"{options.run!r} has no checkpoints yet")
    actions = {"list": _list, "verify": _verify, "show": _show, "prune": _prune, "convert": _convert}
    return actions[options.action](folder, options)


def _list(folder: Path, options: argparse.Namespace) -> Answer:
    listing = scan(folder / CHECKPOINTS)
    rows = [_row(entry, listing.entries) for entry in reversed(listing.entries)]
    head = (rows[0].clock if rows else "frames", "checkpoint", "size", "evaluation", "exact", "back end", "age", "")
    text = _table([head, *map(_cells, rows)])
    return Answer(Checkpoints(rows, listing.problems), text, _report(listing.problems))


def _row(entry: CheckpointEntry, entries: list[CheckpointEntry]) -> ListedCheckpoint:
    manifest = entry.manifest
    marks = {"newest": entry is entries[-1], "best": entry is best(entries)}
    return ListedCheckpoint(
        id=entry.path.name,
        clock=entry.clock,
        now=entry.reached,
        size=entry.size,
        evaluation=entry.evaluation,
        exact=manifest["exact"],
        backend=manifest["backend"],
        time=manifest["time"],
        marks=[mark for mark, holds in marks.items() if holds],
    )


def _cells(row: ListedCheckpoint) -> tuple[str, ...]:
    return (
        f"{row.now:,}",
        row.id,
        _size(row.size),
        "-" if row.evaluation is None else f"{row.evaluation:,.1f}",
        "yes" if row.exact else "no",
        row.backend,
        _age(row.time),
        ", ".join(row.marks),
    )


def _verify(folder: Path, options: argparse.Namespace) -> Answer:
    checkpoints = folder / CHECKPOINTS
    paths = [_choose(checkpoints, options.checkpoint)] if options.checkpoint else committed(checkpoints)
    if not paths:
        raise StorageError(f"{str(folder)!r} has no checkpoints yet")
    verified = [_verified(path) for path in paths]
    damaged = any(checkpoint.problem is not None for checkpoint in verified)
    text = "".join(f"{_verdict(checkpoint)}\n" for checkpoint in verified)
    return Answer(VerifiedCheckpoints(verified), text, StorageError.exit_code if damaged else 0)


def _verified(path: Path) -> VerifiedCheckpoint:
    """Compare the files of a checkpoint with their checksums."""
    files: list[str] = []
    try:
        manifest = read_manifest(path)
        files = [*manifest["files"]]
        foreign = verify(CheckpointEntry(path, manifest["progress"]["frames"], manifest))
    except StorageError as error:
        return VerifiedCheckpoint(path.name, str(error), len(files), [])
    return VerifiedCheckpoint(path.name, None, len(files), [*foreign])


def _verdict(checkpoint: VerifiedCheckpoint) -> str:
    if checkpoint.problem is not None:
        return f"DAMAGED  {printable(checkpoint.id)}: {printable(checkpoint.problem)}"
    foreign = printable(", ".join(checkpoint.foreign))
    note = f", and files that are not its own: {foreign}" if foreign else ""
    return f"whole    {printable(checkpoint.id)}: {checkpoint.files} files{note}"


def _show(folder: Path, options: argparse.Namespace) -> Answer:
    path = _named_or_latest(folder / CHECKPOINTS, options.checkpoint)
    manifest = read_manifest(path)
    return Answer(ShownCheckpoint(str(path), manifest), _facts(path, manifest))


def _facts(path: Path, manifest: dict[str, Any]) -> str:
    """Return what a checkpoint says about itself."""
    entry = CheckpointEntry(path, manifest["progress"]["frames"], manifest)
    exact = "yes" if manifest["exact"] else "no"
    evaluation = "none at this frame" if entry.evaluation is None else f"{entry.evaluation:,.1f}"
    facts = {
        "checkpoint": path.name,
        "saved": f"{manifest['time']} ({_age(manifest['time'])} ago)",
        "progress": ", ".join(f"{name} {value:,}" for name, value in manifest["progress"].items()),
        "evaluation": evaluation,
        "format": f"{manifest['format']}, back end {manifest['backend']}",
        "run": manifest["run_id"] or "not recorded",
        "config": manifest["config_hash"] or "not recorded",
        "digest": manifest["digest"],
        "exact": exact,
    }
    lines = [f"{name:<12}{printable(value)}\n" for name, value in facts.items()]
    lines += [f"{'':<12}because {printable(reason)}\n" for reason in manifest["inexact"]]
    sizes, owners = manifest["sizes"], manifest["owners"]
    tables: dict[str, list[tuple[str, ...]]] = {
        "components": [
            (f"  {name}", owners.get(name) or "-", _size(sizes.get(name, 0)), digest)
            for name, digest in manifest["digests"].items()
        ],
        "files": [(f"  {name}", _size(file["size"]), file["xxh3"]) for name, file in manifest["files"].items()],
    }
    for title in ("data", "versions", "domain"):
        if title in manifest:
            tables[title] = [(f"  {name}", value) for name, value in manifest[title].items()]
    return "".join([*lines, *(f"\n{title}\n{_table(rows)}" for title, rows in tables.items())])


def _convert(folder: Path, options: argparse.Namespace) -> Answer:
    from rlcore.run import open_backend
    from rlcore_plugin_reports.conversion import convert

    lock = Lock(folder)
    try:
        path = _named_or_latest(folder / CHECKPOINTS, options.checkpoint)
        manifest = read_manifest(path)
        entry = CheckpointEntry(path, manifest["progress"]["frames"], manifest)
        made = convert(entry, open_backend(manifest["backend"]), open_backend(options.to))
    finally:
        lock.release()
    converted = ConvertedCheckpoint(path.name, manifest["backend"], made.name, options.to)
    of = f"{printable(path.name)} of back end {printable(converted.backend)}"
    return Answer(converted, f"{of} is also {made.name} of {options.to}\n")


def _prune(folder: Path, options: argparse.Namespace) -> Answer:
    if options.dry_run:
        return _prune_locked(folder, options)
    lock = Lock(folder)
    try:
        return _prune_locked(folder, options)
    finally:
        lock.release()


def _prune_locked(folder: Path, options: argparse.Namespace) -> Answer:
    """Remove what need not be kept, counting only checkpoints that verify; damaged ones are left for people to see."""
    listing = scan(folder / CHECKPOINTS)
    whole = []
    for entry in listing.entries:
        try:
            verify(entry)
        except StorageError as error:
            listing.problems.append(str(error))
        else:
            whole.append(entry)
    removed = surplus(whole, (Latest(options.keep_last), Best()))
    for entry in removed:
        if not options.dry_run:
            try:
                remove(entry)
            except OSError as error:
                raise StorageError(f"checkpoint {printable(entry.path)} cannot be removed: {error}") from error
    pruned = PrunedCheckpoints(
        [entry.path.name for entry in removed],
        [entry.path.name for entry in whole if entry not in removed],
        listing.problems,
    )
    what = "would remove" if options.dry_run else "removed"
    lines = [f"{what}  {printable(name)}\n" for name in pruned.removed]
    lines += [f"kept  {printable(name)}\n" for name in pruned.kept]
    return Answer(pruned, "".join(lines), _report(listing.problems))


def _named_or_latest(checkpoints: Path, name: str | None) -> Path:
    if name:
        return _choose(checkpoints, name)
    listing = scan(checkpoints)
    if not listing.entries:
        raise StorageError(f"no checkpoint in {checkpoints} can be read: {'; '.join(listing.problems) or 'none'}")
    return listing.entries[-1].path


def _choose(checkpoints: Path, name: str) -> Path:
    """Return the checkpoint that a name, the beginning of one, or a frame means."""
    paths = committed(checkpoints)
    ways = (
        [path for path in paths if path.name == name],
        [path for path in paths if name.isdecimal() and path.name.startswith(f"{int(name):012d}-")],
        [path for path in paths if path.name.startswith(name)],
    )
    matching = next((way for way in ways if way), [])
    if len(matching) != 1:
        names = ", ".join(path.name for path in matching or paths) or "none"
        what = "several checkpoints match" if matching else "no checkpoint matches"
        raise ConfigError(f"{what} {name!r} in {checkpoints}: {printable(names)}")
    return matching[0]


def _report(problems: Sequence[str]) -> int:
    """Print what is wrong with checkpoints; return the exit code."""
    for problem in problems:
        print(printable(problem), file=sys.stderr)
    return StorageError.exit_code if problems else 0


def _table(rows: Iterable[Iterable[str]]) -> str:
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _size(size: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _age(time: str) -> str:
    seconds = max(0.0, (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds())
    for unit, factor in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= factor:
            return f"{seconds / factor:.0f} {unit}"
    return f"{seconds:.0f} s"
