"""EarlyStopping stops a run whose metric does not get better."""

import logging
import math

import pytest

from rlcore import EarlyStopping, HookError


@pytest.fixture
def run(batch, make_trainer):
    """Return a function that trains with a metric of given values, one per iteration of 10 frames."""

    def train(values, save=None, load=None, skip=0, **arguments):
        trainer = make_trainer([batch(10)] * (len(values) - skip), save_trainer_file=save)

        def log(batch):
            value = values[trainer.progress.iterations - 1]
            return None if value is None else {"score": value}

        trainer.register_op("post_steps_log", log)
        hook = EarlyStopping(monitor="score", **{"wait_for": 0, "patience": 20, **arguments})
        hook.register(trainer)
        if load is not None:
            trainer.load_from_file(load)
        trainer.train()
        if save is not None:
            trainer.save_trainer(True)
        return trainer

    return train


@pytest.mark.parametrize(
    ("values", "arguments", "frames"),
    [
        ([1, 2, 3, 3, 3, 9, 9], {}, 50),
        ([1, 2, 3, 3, 4, 4, 4, 5], {}, 70),
        ([3, 2, 1, 1, 1, 9], {"mode": "min"}, 50),
        ([1.0, 1.1, 1.2, 1.3, 9.0], {"min_delta": 0.5}, 30),
        ([1, 1, 1, 1, 1, 1], {"wait_for": 30}, 50),
        ([2, 1, 1], {"patience": 0}, 20),
        ([1, 2, 3, 4, 5], {}, 50),
    ],
    ids=["worse", "again better", "min", "delta", "wait", "no patience", "always better"],
)
def test_it_stops_when_patience_is_over(run, values, arguments, frames):
    trainer = run(values, **arguments)
    assert trainer.collected_frames == frames
    assert (trainer.stop_reason or "").startswith("metric 'score' did not improve") == (frames < 10 * len(values))


def test_it_waits_for_a_metric_that_does_not_exist_yet(run):
    trainer = run([None, None, None, 1, 1, 1, 1])
    assert trainer.collected_frames == 60


def test_a_value_counts_until_the_next_one(run):
    assert run([1, None, None, None]).collected_frames == 30


def test_a_value_that_is_not_finite_stops_unless_told_otherwise(run):
    trainer = run([1, math.nan, 2])
    assert trainer.collected_frames == 20
    assert trainer.stop_reason == "metric 'score' is not finite (nan)"
    assert run([1, math.nan, 2], check_finite=False).collected_frames == 30


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_after_a_resume_it_decides_the_same(run, cut, tmp_path):
    values = [1, 2, None, 2, None, 2, 2]
    whole = run(values)
    run(values[:cut], save=tmp_path / "run")
    resumed = run(values, load=tmp_path / "run", skip=cut)
    assert (
        (resumed.collected_frames, resumed.stop_reason)
        == (whole.collected_frames, whole.stop_reason)
        == (
            40,
            "metric 'score' did not improve for 20 frames",
        )
    )


def test_a_stopped_run_stays_stopped_when_it_is_resumed_unless_it_may_wait_longer(run, tmp_path):
    values = [2, 1, 1, 3, 3]
    run(values, save=tmp_path / "run")
    assert run(values, load=tmp_path / "run", skip=3).collected_frames == 30
    assert run(values, load=tmp_path / "run", skip=3, patience=30).collected_frames == 50


def test_a_metric_that_never_came_is_said(run, caplog, batch, make_trainer):
    trainer = make_trainer([batch(4)])
    trainer.register_op("post_steps_log", lambda batch: {"r_training": 1.0})
    EarlyStopping(monitor="r_trainin").register(trainer)
    with caplog.at_level(logging.WARNING):
        trainer.train()
    assert "metric 'r_trainin' was never logged; did you mean 'r_training'?" in caplog.text


@pytest.mark.parametrize("wrong", [{"mode": "most"}, {"patience": -1}, {"wait_for": -1}])
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(HookError, match=f"EarlyStopping: {next(iter(wrong))} ="):
        EarlyStopping(**wrong)


def test_it_must_know_a_trainer():
    with pytest.raises(HookError, match="it knows no trainer"):
        EarlyStopping()()


def test_the_key_of_a_stock_log_can_be_monitored(batch, make_trainer):
    from rlcore import LogScalar

    trainer = make_trainer([batch(4)] * 4)
    LogScalar(("next", "reward")).register(trainer)
    EarlyStopping(monitor=("next", "reward"), patience=4, wait_for=0).register(trainer)
    trainer.train()
    assert trainer.collected_frames == 8


def test_it_sees_what_a_hook_before_it_logs_at_the_same_moment(batch, make_trainer):
    from rlcore.loggers.metrics import Last

    found = []
    trainer = make_trainer([batch(4)] * 2)
    values = iter([{"score": Last(3)}, {"score": [1.0, 3.0]}])
    trainer.register_op("post_steps_log", lambda batch: next(values))
    hook = EarlyStopping(monitor="score", mode="min", wait_for=0)
    hook.register(trainer)
    trainer.register_op("post_steps_log", lambda batch: found.append(hook.best_score))
    trainer.train()
    assert found == [3.0, 2.0]
