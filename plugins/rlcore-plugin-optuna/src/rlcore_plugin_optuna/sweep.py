"""The sweep: trials trained as processes, several at once, each told to Optuna when its runs are over."""

from __future__ import annotations

import argparse
import logging
import shlex
import signal
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import optuna
from optuna.trial import TrialState

from rlcore.cli import Answer
from rlcore.errors import ConfigError
from rlcore.files import Lock, in_use
from rlcore.process import collected_stops, how_it_ended
from rlcore_plugin_optuna import result
from rlcore_plugin_optuna.by_name import pruner, sampler
from rlcore_plugin_optuna.command import Swept
from rlcore_plugin_optuna.run_process import RunProcess, folder_of, frame_of, is_done, start
from rlcore_plugin_optuna.space import check, distributions
from rlcore_plugin_optuna.study_file import StudyFile, read_study
from rlcore_plugin_optuna.study_folder import begin, check_same, go_on
from rlcore_plugin_optuna.trials import choose, is_pruned, next_trial, trial_of, unfinished, value_of

log = logging.getLogger(__name__)

# how often a run that is killed without getting any further is resumed
_TRIES: Final = 3
# trials that fail before any is complete, after which the sweep ends: it is not the values that fail
_HOPELESS: Final = 3
_POLL: Final = 0.1


def run(options: argparse.Namespace) -> Answer:
    """Check the study file, then sweep."""
    file = read_study(Path(options.study))
    file.study.trials = options.trials or file.study.trials
    sampler(file, 0), pruner(file)  # before anything is written, each raises where there is no such one
    check(file, options.trust)
    if options.dry_run:
        log.info("%s: the study can be begun; nothing was written", options.study)
        return Answer(Swept(str(file.place), {}, None))
    if in_use(file.place):
        raise ConfigError(f"study folder {str(file.place)!r} is in use by another process of `rlcore sweep`")
    study = go_on(file) if options.resume else begin(file)
    lock = Lock(file.place)
    try:
        with collected_stops() as stops:
            sweep = Sweep(file, study, options.jobs, stops)
            sweep.run()
        return _end(sweep, stops, options.study)
    finally:
        lock.release()


def _end(sweep: Sweep, stops: Sequence[int], named: str) -> Answer:
    """Say what was found, and write the best config."""
    swept = result.report(sweep.file, sweep.study)
    if stops and not sweep.over():
        log.info("stopped; continue with: rlcore sweep %s --resume", shlex.quote(named))
        return Answer(swept, code=128 + stops[0])
    return Answer(swept, code=0 if sweep.complete() else 1)


class Sweep:
    """Trains the trials of a study.

    Args:
        file: says what the study is.
        study: with the trials so far.
        jobs: how many processes train at once.
        stops: the signals that asked for a stop; more may come.
    """

    def __init__(self, file: StudyFile, study: optuna.Study, jobs: int, stops: Sequence[int]) -> None:
        self.file, self.study = file, study
        self._jobs, self._stops = jobs, stops
        self._passed_on = 0
        self._running: list[RunProcess] = []
        self._waiting = unfinished(study)
        self._over: set[tuple[int, int]] = set()
        self._idle: Counter[tuple[int, int]] = Counter()

    def run(self) -> None:
        """Train until all trials are told, or a signal asks for a stop."""
        try:
            while self._fill() or self._running:
                time.sleep(_POLL)
                for process in [process for process in self._running if process.has_ended]:
                    self._running.remove(process)
                    self._ended(process)
                for _ in self._stops[self._passed_on :]:
                    self._passed_on += 1
                    self._send(signal.SIGTERM)
        except BaseException:
            self._send(signal.SIGTERM)
            raise

    def over(self) -> bool:
        """Return whether there are all trials, and each is told."""
        return len(self.study.trials) >= self.file.study.trials and not unfinished(self.study)

    def complete(self) -> list[optuna.trial.FrozenTrial]:
        """Return the trials that came to their end."""
        return self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))

    def _send(self, number: int) -> None:
        for process in self._running:
            process.send(number)

    def _fill(self) -> bool:
        """Begin or resume trials while there is room; return whether any can be begun later."""
        while len(self._running) < self._jobs:
            number = self._next()
            if number is None:
                return False
            self._go_on(number)
        return True

    def _next(self) -> int | None:
        """Return the number of a trial that is to be trained."""
        if self._stops or self._is_hopeless():
            return None
        if self._waiting:
            number = self._waiting.pop(0)
            choose(trial_of(self.study, number), distributions(self.file))
            return number
        if len(self.study.trials) >= self.file.study.trials:
            return None
        check_same(self.file)
        return next_trial(self.study, self.file).number

    def _is_hopeless(self) -> bool:
        states = Counter(trial.state for trial in self.study.get_trials(deepcopy=False))
        return (
            states[TrialState.FAIL] >= _HOPELESS and not states[TrialState.COMPLETE] and not states[TrialState.PRUNED]
        )

    def _go_on(self, number: int) -> None:
        """Train the first run of a trial that is not over; tell the trial where none is left."""
        trial = self.study.trials[number]
        for run in () if is_pruned(trial) else range(self.file.study.seeds):
            folder = folder_of(self.file, number, run)
            if in_use(folder):
                log.info("trial %d: its run is still trained by another process; waiting for it", number)
                self._running.append(RunProcess(number, run, folder, None, frame_of(folder)))
                return
            if (number, run) not in self._over and not is_done(folder):
                self._start(number, run)
                return
        self._tell(number)

    def _start(self, number: int, run: int) -> None:
        trial = self.study.trials[number]
        process = start(self.file, number, run, trial.params)
        self._running.append(process)
        values = ", ".join(f"{key} = {result.shown(value)}" for key, value in trial.params.items())
        where = f"resumed at frame {process.from_frame:,}" if process.from_frame else values
        several = f", run {run}" if self.file.study.seeds > 1 else ""
        log.info("trial %d%s: %s", number, several, where)

    def _ended(self, process: RunProcess) -> None:
        """Go on with a trial of which a process ended, unless it failed or a stop was asked for."""
        place = (process.trial, process.run)
        if process.code == 0:
            self._over.add(place)
        elif process.was_killed:
            if self._stops:
                return
            self._idle[place] = 0 if process.frame > process.from_frame else self._idle[place] + 1
            if self._idle[place] >= _TRIES:
                self._fail(process, f"its process was killed {_TRIES} times at frame {process.frame:,}")
                return
            log.info("trial %d goes on, as its process %s", process.trial, how_it_ended(process.code))
        elif process.code is not None:
            self._fail(process, process.last_words())
            return
        self._go_on(process.trial)

    def _fail(self, process: RunProcess, why: str) -> None:
        trial_of(self.study, process.trial).set_user_attr("error", why)
        self.study.tell(process.trial, state=TrialState.FAIL)
        log.info("trial %d failed: %s", process.trial, why)

    def _tell(self, number: int) -> None:
        """Tell Optuna the result of a trial whose runs are over."""
        trial = self.study.trials[number]
        value = value_of(trial, self.file.study.seeds)
        if is_pruned(trial):
            self.study.tell(number, state=TrialState.PRUNED)
            log.info("trial %d: pruned", number)
        elif value is None:
            trial_of(self.study, number).set_user_attr("error", "no evaluation was made")
            self.study.tell(number, state=TrialState.FAIL)
            log.info("trial %d failed: no evaluation was made; the config needs an [evaluator]", number)
        else:
            self.study.tell(number, value)
            log.info("trial %d: %s", number, result.shown(value))
