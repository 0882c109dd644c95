"""Which runs `rlcore train --seeds` is about: their seeds, folders, and what each of them still has to do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlcore.errors import ConfigError
from rlcore.files import in_use
from rlcore.run_folder import CONFIG_FILE, reached_by, read_status

# for which the companion of a process that is gone holds its lock
_LEFT_BEHIND_SECONDS: Final = 3.0


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


def plan(place: Path, numbers: Sequence[int], target: int, resume: bool) -> list[Seed]:
    """Return the runs, as far as their folders say.

    Args:
        place: run folder that the config names; those of the seeds are called after it.
        numbers: the seeds.
        target: where on its clock a run has nothing left to do.
        resume: whether runs that are there go on.

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
    if busy := [folder for folder in there if _stays_in_use(folder)]:
        raise ConfigError(f"{_listed(busy)}: another process works there; wait for it, or stop it")
    if foreign := [folder for folder in there if not (folder / CONFIG_FILE).is_file()]:
        raise ConfigError(
            f"--resume: {_listed(foreign)} holds no {CONFIG_FILE}, so it is no run folder, or the run ended before it "
            "began; remove it"
        )
    return [_as_it_stands(number, folder, target) for number, folder in folders.items()]


def _stays_in_use(folder: Path) -> bool:
    """Return whether a process works in a folder, and not only what a process left behind that has just ended."""
    end = time.monotonic() + _LEFT_BEHIND_SECONDS
    while in_use(folder):
        if time.monotonic() >= end:
            return True
        time.sleep(0.05)
    return False


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
