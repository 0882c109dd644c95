"""The trials of a study: asked for, found again after a kill, and told."""

from __future__ import annotations

from collections.abc import Mapping

import optuna
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, Trial, TrialState

from rlcore_plugin_optuna.by_name import sampler
from rlcore_plugin_optuna.hook import PRUNED, attribute_of
from rlcore_plugin_optuna.space import Distribution, distributions
from rlcore_plugin_optuna.study_file import StudyFile


def trial_of(study: optuna.Study, number: int) -> Trial:
    """Return a trial that goes on, by its number."""
    return Trial(study, study.trials[number]._trial_id)


def is_told(study: optuna.Study, number: int) -> bool:
    """Return whether the result of a trial is known."""
    return study.get_trials(deepcopy=False)[number].state.is_finished()


def unfinished(study: optuna.Study) -> list[int]:
    """Return the numbers of the trials that were begun and not told, the first one first."""
    return [trial.number for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))]


def next_trial(study: optuna.Study, file: StudyFile) -> Trial:
    """Return a new trial with all its values chosen."""
    study.sampler = sampler(file, len(study.trials))
    trial = study.ask()
    choose(trial, distributions(file))
    return trial


def choose(trial: Trial, space: Mapping[str, Distribution]) -> None:
    """Choose the values that a trial lacks; one that was killed while it chose has some."""
    for key, entry in space.items():
        if isinstance(entry, CategoricalDistribution):
            trial.suggest_categorical(key, entry.choices)
        elif isinstance(entry, IntDistribution):
            trial.suggest_int(key, entry.low, entry.high, step=entry.step, log=entry.log)
        else:
            trial.suggest_float(key, entry.low, entry.high, step=entry.step, log=entry.log)


def value_of(trial: FrozenTrial, runs: int) -> float | None:
    """Return the mean over the runs of a trial, or None where one of them was never evaluated."""
    values = [trial.user_attrs.get(attribute_of(run)) for run in range(runs)]
    known = [float(value) for value in values if value is not None]
    return sum(known) / runs if len(known) == runs else None


def is_pruned(trial: FrozenTrial) -> bool:
    """Return whether a run of the trial was stopped because it is worse than others."""
    return PRUNED in trial.user_attrs
