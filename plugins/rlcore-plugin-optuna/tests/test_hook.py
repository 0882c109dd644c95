"""The hook: what it reports, what a run that is repeated reports, and when it stops a run."""

from dataclasses import replace

import optuna
import pytest
import torch
from rlcore_plugin_optuna.hook import PRUNED, SweepTrial
from rlcore_plugin_optuna.study_file import read_study
from rlcore_plugin_optuna.study_folder import begin
from rlcore_plugin_optuna.trials import next_trial
from rlcore_plugin_testing import make_run


@pytest.fixture
def study_of(write_study):
    """Begin a study; return its file and the study."""

    def make(**sections):
        file = read_study(write_study(**sections))
        return file, begin(file)

    return make


def train(file, trial, run=0, stop_at=None, resume=False):
    """Train the small run as a run of a trial; return its trainer."""
    hook = {"use": "optuna:sweep-trial", "trial": trial, "run": run}
    trainer = make_run(
        f"run.name=trial-{trial}-{run}", folder=file.place / "runs", sections={"hook": [hook]}, resume=resume
    ).trainer
    trainer.stop_at = stop_at or trainer.stop_at
    trainer.train()
    return trainer


def test_each_evaluation_is_reported_once_also_by_a_run_that_is_resumed(study_of):
    file, study = study_of(study={"metric": "last"})
    next_trial(study, file)
    train(file, 0, stop_at=32)
    trainer = train(file, 0, resume=True)
    reported = study.trials[0].intermediate_values
    assert list(reported) == [32, 64], "what was not trained is not reported"
    assert reported[64] == trainer.last_evaluation.mean_return == study.trials[0].user_attrs["run 0"]


def test_the_last_evaluation_is_what_counts_by_default(study_of):
    file, study = study_of()
    next_trial(study, file)
    trainer = train(file, 0)
    (hook,) = [each.instance for each in trainer.hooks.hooks if isinstance(each.instance, SweepTrial)]
    hook.evaluation(replace(trainer.last_evaluation, returns=(-5.0,)), trainer)
    assert study.trials[0].user_attrs["run 0"] == -5.0


def test_the_best_evaluation_so_far_counts_where_it_is_asked_for(study_of):
    file, study = study_of(study={"metric": "best"})
    next_trial(study, file)
    trainer = train(file, 0)
    values = list(study.trials[0].intermediate_values.values())
    assert values == sorted(values)
    assert values[-1] == trainer.best_evaluation.mean_return


def test_the_runs_of_a_trial_report_their_mean_at_steps_that_go_on(study_of):
    file, study = study_of(study={"seeds": 2, "metric": "last"})
    next_trial(study, file)
    first, second = (train(file, 0, run).last_evaluation.mean_return for run in (0, 1))
    reported = study.trials[0].intermediate_values
    assert list(reported) == [32, 64, 96, 128]
    assert reported[128] == pytest.approx((first + second) / 2, abs=0)


def test_a_trial_that_is_worse_than_the_pruner_allows_stops_its_run(study_of):
    file, study = study_of(pruner={"use": "threshold", "lower": 1e9})
    next_trial(study, file)
    trainer = train(file, 0)
    assert trainer.stop_reason == "trial 0 is pruned"
    assert trainer.progress.frames < trainer.run_info.total_frames
    assert study.trials[0].user_attrs[PRUNED] == 32


def test_a_run_of_a_trial_that_is_over_reports_nothing(study_of, caplog):
    file, study = study_of()
    next_trial(study, file)
    study.tell(0, state=optuna.trial.TrialState.FAIL)
    train(file, 0)
    assert study.trials[0].intermediate_values == {}
    assert "trial 0 is over" in caplog.text


def test_training_does_not_notice_the_hook(study_of):
    file, study = study_of()
    next_trial(study, file)
    alone = make_run().trainer
    alone.train()
    for watched, weight in zip(train(file, 0).parts.model.parameters(), alone.parts.model.parameters(), strict=True):
        assert torch.equal(watched, weight)
