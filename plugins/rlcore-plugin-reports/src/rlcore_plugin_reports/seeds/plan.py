"""Which runs `rlcore train --seeds` is about: their seeds, folders, and what each of them still has to do."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcore.errors import ConfigError
from rlcore.files import in_use
from rlcore.run_folder import CONFIG_FILE, reached_by, read_status

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seed:
    """One of the runs.

    Attributes:
        number: the seed.
        folder: of the run.
        goes_on: whether the run is there already and is resumed.
        finished: whether it has nothing left to do.
    """

    number: int
    folder: Path
    goes_on: bool = False
    finished: bool = False


def seeds_of(text: str, first: int) -> list[int]:
    """Return the seeds that `--seeds` names: so many from `first` on, or those of a list with commas.

    Raises:
        ConfigError: it is neither, or names a seed twice.
    """
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or ("," not in text and numbers[0] == 0):
        raise ConfigError(
            f"--seeds {text}: a number of seeds, such as 5, or the seeds themselves with commas, such as 1,2,5"
        )
    if "," not in text:
        return list(range(first, first + numbers[0]))
    if twice := [number for number in dict.fromkeys(numbers) if numbers.count(number) > 1]:
        raise ConfigError(f"--seeds {text}: {twice[0]} is there twice")
    return numbers


def plan(place: Path, numbers: Sequence[int], target: int, resume: bool, patience: float = 0.0) -> list[Seed]:
    """Return the runs, as far as their folders say.

    Args:
        place: run folder that the config names; those of the seeds are called after it.
        numbers: the seeds.
        target: where on its clock a run has nothing left to do.
        resume: whether runs that are there go on.
        patience: seconds for processes in their folders to end, as the runs of a command that was killed do.

    Raises:
        ConfigError: a folder is there and nothing is resumed; or a process works in one.
    """
    folders = {number: place.with_name(f"{place.name}-seed-{number}") for number in numbers}
    there = [folder for folder in folders.values() if folder.exists()]
    if there and not resume:
        raise ConfigError(
            f"{_these(there)} already; continue with --resume, choose another name with --set run.name=NAME, or remove "
            "what is there"
        )
    if busy := _in_use_after(patience, there):
        raise ConfigError(f"{_listed(busy)}: another process works there; wait for it, or stop it")
    if foreign := [folder for folder in there if not (folder / CONFIG_FILE).is_file()]:
        raise ConfigError(
            f"--resume: {_listed(foreign)} holds no {CONFIG_FILE}, so it is no run folder, or the run ended before it "
            "began; remove it"
        )
    return [_as_it_stands(number, folder, target) for number, folder in folders.items()]


def _in_use_after(seconds: float, folders: Sequence[Path]) -> list[Path]:
    """Return the folders in which a process still works after so many seconds; return at once where there is none."""
    end, told = time.monotonic() + seconds, False
    while (busy := [folder for folder in folders if in_use(folder)]) and time.monotonic() < end:
        if not told:
            log.info("waiting up to %.0f s for the process in %s to end", seconds, _listed(busy))
            told = True
        time.sleep(0.05)
    return busy


def _as_it_stands(number: int, folder: Path, target: int) -> Seed:
    if not folder.exists():
        return Seed(number, folder)
    status = read_status(folder)
    reached = status.get("state") in ("done", "stopped-resumable") and reached_by(status) >= target
    return Seed(number, folder, goes_on=True, finished=reached)


def _these(folders: Sequence[Path]) -> str:
    return f"{_listed(folders)} exist{'s' if len(folders) == 1 else ''}"


def _listed(folders: Sequence[Path]) -> str:
    return ", ".join(str(folder) for folder in folders)
