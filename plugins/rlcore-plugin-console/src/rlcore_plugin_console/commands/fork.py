"""`rlcore fork`: a run of its own, which goes on from a checkpoint of another run."""

from __future__ import annotations

import argparse
import secrets
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlcore.checkpoints import read_manifest, verify
from rlcore.checkpoints import scan as scanned
from rlcore.cli import Answer, add_json
from rlcore.errors import ConfigError
from rlcore.files import plain_file
from rlcore.run_folder import CHECKPOINTS, CONFIG_FILE, ID_FILE

# what says nothing about the fork: who trains in the other folder, what it is called, how it stands, what it printed
_LEFT: Final = (".lock", ID_FILE, CHECKPOINTS, "status.json", "output.log", "curves.png", "report.html", "faults")


@dataclass(frozen=True)
class Forked:
    """The run that was made.

    Attributes:
        folder: of it.
        command: with which it goes on, word by word.
    """

    folder: str
    command: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore fork`."""
    parser.description = (
        "Copy a run up to one of its checkpoints, as a run of its own. To let it go on: rlcore train --resume=FOLDER "
        "--set=run.name=NAME --accept-changes, with --set for each key that is to differ."
    )
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="its folder, such as runs/a/checkpoints/000000010000-0a1b2c"
    )
    parser.add_argument("folder", metavar="FOLDER", help="of the new run; there must be nothing of that name")
    add_json(parser, Forked)


def run(options: argparse.Namespace) -> Answer:
    """Copy, and answer with how to go on."""
    folder = fork(Path(options.checkpoint), Path(options.folder))
    name = folder.resolve().name
    command = ["rlcore", "train", f"--resume={folder}", f"--set=run.name={name}", "--accept-changes"]
    return Answer(Forked(str(folder), command), f"{shlex.join(command)}\n")


def fork(checkpoint: Path, folder: Path) -> Path:
    """Copy a run up to a checkpoint; its tables are cut back to there when it goes on.

    Args:
        checkpoint: its folder in the run folder.
        folder: of the new run.

    Returns:
        The new folder, which is there as a whole or not at all.

    Raises:
        ConfigError: there is no such checkpoint in a run folder, the new folder exists, or it cannot be written.
        StorageError: the checkpoint is damaged.
    """
    checkpoint = checkpoint.absolute()
    run = checkpoint.parent.parent
    if checkpoint.parent.name != CHECKPOINTS or not (run / CONFIG_FILE).is_file():
        raise ConfigError(
            f"{str(checkpoint)!r} is not in the folder {CHECKPOINTS} of a run; `rlcore ckpt list RUN` lists them"
        )
    entry = next((each for each in scanned(run / CHECKPOINTS).entries if each.path.name == checkpoint.name), None)
    if entry is None:
        read_manifest(checkpoint)  # says what is wrong with it
        raise ConfigError(f"{str(checkpoint)!r} is not a checkpoint that can be resumed")
    verify(entry)
    if folder.exists() or folder.is_symlink():
        raise ConfigError(f"{str(folder)!r} exists already; choose another name for the fork")
    place = folder.with_name(f".{folder.name}-{secrets.token_hex(3)}")
    try:
        _copy(run, entry.path, place)
        place.rename(folder)
    except OSError as error:
        raise ConfigError(f"{str(folder)!r} cannot be made: {error}") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return folder


def _copy(run: Path, checkpoint: Path, folder: Path) -> None:
    shutil.copytree(run, folder, ignore=_left, copy_function=_copy_plain)
    shutil.copytree(checkpoint, folder / CHECKPOINTS / checkpoint.name, copy_function=_copy_plain)
    # another id than that of the run, so that loggers branch off
    (folder / ID_FILE).write_text(f"{secrets.token_hex(8)}\n", encoding="ascii")


def _left(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name in _LEFT or Path(folder, name).is_symlink()]


def _copy_plain(source: str, target: str) -> None:
    with plain_file(Path(source)) as stream, Path(target).open("wb") as copy:
        shutil.copyfileobj(stream, copy)
