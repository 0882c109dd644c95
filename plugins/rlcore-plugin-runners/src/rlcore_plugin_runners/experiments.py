"""Runs of a script side by side, each with its share of the machine and its variant of the settings."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rlcore.errors import ConfigError, RlcoreError
from rlcore.process import companion, how_it_ended
from rlcore_plugin_runners.affinity_codes import affinity_from_code, get_n_run_slots, prepend_run_slot
from rlcore_plugin_runners.context import get_log_dir
from rlcore_plugin_runners.variants import save_variant

log = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.1


@dataclass
class _Started:
    """A run that goes on: its process, and what it is called in messages."""

    process: subprocess.Popen[bytes]
    name: str


def run_experiments(
    script: str | Path,
    affinity_code: str,
    experiment_title: str,
    runs_per_setting: int,
    variants: Sequence[Mapping[str, Any]],
    log_dirs: Sequence[str],
    common_args: Sequence[Any] | None = None,
    runs_args: Sequence[Sequence[Any]] | None = None,
    python_executable: str | None = None,
) -> None:
    """Run a script for each variant, as many side by side as the affinity code has slots, and wait for all.

    Each is started as `python SCRIPT SLOT_AFFINITY_CODE LOG_DIR RUN_ID ARGUMENTS...`; its runner binds itself to the
    CPUs of its slot, which `affinity_from_code` says. Folders are below `data/local/DATE/TIME/EXPERIMENT_TITLE`;
    `experiments_tree.txt` there has all of them, and `num_launched.txt` says how many were started.

    Args:
        script: a file of Python.
        affinity_code: of `encode_affinity`, without a slot.
        experiment_title: name of the folder.
        runs_per_setting: runs of each variant; their `RUN_ID` counts from 0.
        variants: of `make_variants`; the script reads its own with `load_variant(LOG_DIR)`.
        log_dirs: the folder of each variant.
        common_args: further arguments of every run.
        runs_args: further arguments of the runs of each variant.
        python_executable: default: this one.

    Raises:
        ConfigError: there is no such script, or the lists are not as long as each other.
        RlcoreError: runs have failed; the others have come to their end.
    """
    own_args = [()] * len(variants) if runs_args is None else runs_args
    if not len(variants) == len(log_dirs) == len(own_args):
        raise ConfigError(
            f"run_experiments: {len(variants)} variants, {len(log_dirs)} log_dirs and {len(own_args)} runs_args; each "
            "variant has one of each"
        )
    if not Path(script).is_file():
        raise ConfigError(f"run_experiments: there is no script {str(script)!r} in {Path.cwd()}")
    folder = get_log_dir(experiment_title)
    folder.mkdir(parents=True)
    (folder / "experiments_tree.txt").write_text("\n".join(map(str, log_dirs)) + "\n", encoding="utf-8")
    slots = _Slots([sys.executable if python_executable is None else python_executable, str(script)], affinity_code)
    total = runs_per_setting * len(variants)
    try:
        for number in range(total):
            run_id, at = divmod(number, len(variants))
            place = folder / log_dirs[at]
            place.mkdir(parents=True, exist_ok=True)
            save_variant(variants[at], place)
            slots.start([str(place), str(run_id), *map(str, (*(common_args or ()), *own_args[at]))])
            (folder / "num_launched.txt").write_text(f"{number + 1} of {total}\n", encoding="utf-8")
        slots.wait_for_all()
    except BaseException:
        slots.stop()
        raise
    if slots.failures:
        raise RlcoreError(f"run_experiments: {len(slots.failures)} of {total} runs failed: {'; '.join(slots.failures)}")


class _Slots:
    """The places for runs on this machine.

    Attributes:
        failures: the runs that have failed, and how.
    """

    def __init__(self, command: list[str], affinity_code: str) -> None:
        self.failures: list[str] = []
        self._command, self._code = command, affinity_code
        self._started: list[_Started | None] = [None] * get_n_run_slots(affinity_code)
        for slot in range(len(self._started)):
            affinity_from_code(prepend_run_slot(slot, affinity_code))  # refuse here what no run could take

    def start(self, arguments: list[str]) -> None:
        """Start a run as soon as there is a free slot."""
        while None not in self._started:
            self._look()
        slot = self._started.index(None)
        command = [*self._command, prepend_run_slot(slot, self._code), *arguments]
        process = subprocess.Popen(command)
        companion.end_with_this(process.pid, signal.SIGTERM)  # it saves its state
        self._started[slot] = _Started(process, f"run {arguments[1]} in {arguments[0]}")
        log.info("slot %d: %s", slot, " ".join(command))

    def wait_for_all(self) -> None:
        """Wait until no run goes on."""
        while any(self._started):
            self._look()

    def _look(self) -> None:
        """Free the slots of runs that have ended; wait a little where none has."""
        ended = [slot for slot, run in enumerate(self._started) if run and run.process.poll() is not None]
        for slot in ended:
            run = self._started[slot]
            assert run is not None
            if run.process.returncode:
                self.failures.append(f"{run.name} {how_it_ended(run.process.returncode)}")
            self._started[slot] = None
        if not ended:
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Ask the runs under way to stop, and wait until they have saved."""
        running = [run.process for run in self._started if run is not None]
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
