"""What each kind of point does with return values and errors."""

from __future__ import annotations

import logging
import sys

import pytest
import torch

from rlcore import hookimpl
from rlcore.errors import HookError
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.hooks.specs import POINTS


class Implements:
    """A hook with one function, given as a callable."""

    def __init__(self, point, function):
        setattr(self, point, hookimpl(function))


def returning(point, value):
    return Implements(point, lambda: value)


def points_of(kind):
    return [name for name, point in POINTS.items() if point.kind == kind]


# pipeline


def test_a_pipeline_passes_each_result_on_and_none_leaves_it(build):
    seen = []

    class Add:
        def __init__(self, amount):
            self.amount = amount

        @hookimpl
        def batch_process(self, batch):
            seen.append(batch["next", "reward"].mean().item())
            if self.amount:
                return batch.clone().set(("next", "reward"), batch["next", "reward"] + self.amount)

    run = build([Add(1), Add(0), Add(10), Add(0)], run={"total_frames": 32})
    run.trainer.train()
    assert seen == [1, 2, 2, 12]


@pytest.mark.parametrize("point", points_of("pipeline"))
@pytest.mark.parametrize("value", [3, "batch", [1.0], True])
def test_a_pipeline_refuses_a_wrong_type_and_names_hook_and_point(build, point, value):
    run = build([returning(point, value)])
    with pytest.raises(HookError, match=rf"'Implements-1'.*at point '{point}' returned {type(value).__name__}"):
        run.trainer.train()


def test_a_later_hook_is_not_called_with_a_wrong_type(build):
    called = []
    run = build([returning("batch_process", 1), Implements("batch_process", lambda: called.append(1))])
    with pytest.raises(HookError, match="Implements-1"):
        run.trainer.train()
    assert called == []


# collect


def test_mappings_of_a_collect_point_are_merged(build):
    run = build(
        [returning("pre_steps_log", {"a": 1}), returning("pre_steps_log", None), returning("pre_steps_log", {"b": 2})]
    )
    run.trainer.train()
    assert (run.trainer.metrics.latest["a"], run.trainer.metrics.latest["b"]) == (1, 2)


@pytest.mark.parametrize("point", points_of("collect"))
def test_colliding_metrics_are_both_kept_with_one_warning(build, caplog, point):
    run = build(
        [returning(point, {"same": 1.0, "own": 3.0}), returning(point, {"same": 2.0}), returning(point, {"same": 4.0})]
    )
    with caplog.at_level(logging.WARNING):
        run.trainer.train()
    prefix = "train/" if point == "post_optim_log" else ""
    latest = run.trainer.metrics.latest
    assert latest[f"{prefix}Implements-1/same"] == 1
    assert latest[f"{prefix}Implements-2/same"] == 2
    assert latest[f"{prefix}Implements-3/same"] == 4
    assert latest[f"{prefix}own"] == 3
    assert f"{prefix}same" not in latest
    warnings = [record.getMessage() for record in caplog.records if "same" in record.getMessage()]
    assert len(warnings) == 1, "one warning for the whole run"
    assert all(part in warnings[0] for part in ("Implements-1", "Implements-2", point))


@pytest.mark.parametrize(
    ("point", "key", "kept"),
    [
        *[(point, "train/lr", "Implements-1/train/lr") for point in points_of("collect") if point != "post_optim_log"],
        ("pre_steps_log", "train/loss_critic", "Implements-1/train/loss_critic"),
        ("post_steps_log", "train/loss_critic", "Implements-1/train/loss_critic"),
        ("pre_steps_log", "episode/length", "Implements-1/episode/length"),
        ("pre_steps_log", "time/frames_per_second", "time/Implements-1/frames_per_second"),
        ("post_optim_log", "loss_critic", "train/Implements-1/loss_critic"),
    ],
)
def test_a_metric_of_a_hook_that_is_called_as_one_of_the_core_is_kept_beside_it(build, caplog, point, key, kept):
    plain = build()
    plain.trainer.train()
    run = build([returning(point, {key: 1e6, "log_pbar": True})])
    with caplog.at_level(logging.WARNING):
        run.trainer.train()
    latest, of_core = run.trainer.metrics.latest, f"train/{key}" if point == "post_optim_log" else key
    assert latest[kept] == 1e6
    if not key.startswith("time/"):
        assert latest[of_core] == plain.trainer.metrics.latest[of_core]
    assert run.trainer.metrics.on_bar == {kept}
    warnings = [record.getMessage() for record in caplog.records if key in record.getMessage()]
    assert len(warnings) == 1, "one warning for the whole run"
    assert "Implements-1" in warnings[0]


def test_metrics_of_one_name_from_hooks_at_several_points_are_both_kept(build):
    run = build([returning("pre_steps_log", {"same": 1.0}), returning("post_steps_log", {"same": 2.0})])
    run.trainer.train()
    latest = run.trainer.metrics.latest
    assert (latest["same"], latest["Implements-2/same"]) == (1.0, 2.0)


@pytest.mark.parametrize("point", points_of("collect"))
@pytest.mark.parametrize("key", [3, None, ("a", "b")])
def test_a_name_of_a_metric_that_is_no_text_is_an_error_that_names_the_hook(build, point, key):
    run = build([returning(point, {key: 1.0})])
    with pytest.raises(HookError, match=rf"'Implements-1'.* at point '{point}' .*names of metrics that are text, not"):
        run.trainer.train()


@pytest.mark.parametrize("point", points_of("collect"))
def test_log_pbar_marks_the_keys_of_its_own_mapping(build, point):
    run = build([returning(point, {"shown": 1.0, "too": 2.0, "log_pbar": True}), returning(point, {"hidden": 3.0})])
    run.trainer.train()
    prefix = "train/" if point == "post_optim_log" else ""
    assert run.trainer.metrics.on_bar == {f"{prefix}shown", f"{prefix}too"}
    assert not any("log_pbar" in key for key in run.trainer.metrics.latest)


def test_log_pbar_false_shows_nothing(build):
    run = build([returning("pre_steps_log", {"hidden": 1.0, "log_pbar": False})])
    run.trainer.train()
    assert run.trainer.metrics.on_bar == set()
    assert run.trainer.metrics.latest["hidden"] == 1.0


def test_a_shown_metric_that_collides_is_shown_under_the_name_it_got(build):
    run = build(
        [returning("pre_steps_log", {"same": 1.0, "log_pbar": True}), returning("pre_steps_log", {"same": 2.0})]
    )
    run.trainer.train()
    assert run.trainer.metrics.on_bar == {"Implements-1/same"}
    assert run.trainer.metrics.on_bar <= set(run.trainer.metrics.latest)


@pytest.mark.parametrize("point", points_of("collect"))
@pytest.mark.parametrize("value", [3.0, [("a", 1)], "a"])
def test_a_collect_point_refuses_what_is_not_a_mapping(build, point, value):
    run = build([returning(point, value)])
    with pytest.raises(HookError, match=rf"'Implements-1'.*at point '{point}' returned {type(value).__name__}"):
        run.trainer.train()


# notify


@pytest.mark.parametrize("point", [name for name in points_of("notify") if name not in ("on_exception", "shutdown")])
def test_a_notify_point_must_return_none(build, point):
    run = build([returning(point, 0)], evaluator={"use": "episodes", "episodes": 1}, write=True)
    with pytest.raises(HookError, match=rf"'Implements-1'.*at point '{point}' returned int; expected None"):
        run.trainer.train()


# owner


def test_the_owner_must_return_a_mapping(build):
    run = build([returning("optimizer", None)])
    with pytest.raises(HookError, match=r"'Implements-1'.*at point 'optimizer' returned NoneType"):
        run.trainer.train()


# errors


def in_loop():
    return [name for name in POINTS if name not in ("on_exception", "shutdown")]


# point to the phase, iteration and frame of its first call, in the tiny run
PLACES = {
    "setup": ("setup", 0, 0),
    "checkpoint_saved": ("saving", 0, 0),
    "evaluation": ("evaluating", 0, 0),
    "episode_end": ("preparing the batch", 1, 64),
    "batch_process": ("preparing the batch", 0, 0),
    "pre_steps_log": ("preparing the batch", 0, 32),
    **dict.fromkeys(("pre_optim_steps", "pre_epoch_log", "pre_epoch", "process_optim_batch"), ("optimising", 0, 32)),
    **dict.fromkeys(("post_loss", "optimizer", "post_optim", "post_optim_log"), ("optimising", 0, 32)),
    **dict.fromkeys(("post_epoch_log", "post_epoch", "post_optim_complete_log"), ("optimising", 0, 32)),
    "post_steps": ("optimising", 1, 32),
    "post_steps_log": ("logging", 1, 32),
}


class SpecialError(Exception):
    def __init__(self, code, detail):
        super().__init__(code, detail)


@pytest.mark.parametrize("point", in_loop())
def test_an_exception_keeps_its_type_and_says_which_hook_and_point(build, point):
    def fail():
        raise SpecialError(7, "detail")

    run = build([Implements(point, fail)], evaluator={"use": "episodes", "episodes": 1}, write=True)
    with pytest.raises(SpecialError) as raised:
        run.trainer.train()
    assert raised.value.args == (7, "detail")
    blame, place = raised.value.__notes__
    assert blame == f"raised by hook 'Implements-1' (this script) at point '{point}'"
    phase, iteration, frame = PLACES[point]
    assert place == f"while {phase}, iteration {iteration}, frame {frame}"
    assert raised.traceback[-1].name == "fail", "the traceback leads into the hook"


@pytest.mark.parametrize("point", ["on_exception", "shutdown"])
def test_at_the_end_each_hook_is_isolated(build, caplog, point):
    called = []

    def fail():
        raise SpecialError(1, "at the end")

    hooks = [Implements(point, lambda: called.append("first")), Implements(point, fail)]
    hooks += [Implements(point, lambda: called.append("last")), Implements("post_steps", lambda: 1 / 0)]
    with pytest.raises(ZeroDivisionError):
        build(hooks).trainer.train()
    order = ["first", "last"] if point == "on_exception" else ["last", "first"]
    assert called == order
    assert "Implements-2" in caplog.text
    assert point in caplog.text
    assert "at the end" in caplog.text


def test_a_run_whose_shutdown_hook_fails_still_ends_well(build, caplog):
    run = build([Implements("shutdown", lambda: 1 / 0)])
    assert run.trainer.train().frames == 96
    assert "ZeroDivisionError" in caplog.text


def stop_iteration():
    raise StopIteration


@pytest.mark.parametrize("leave", [lambda: sys.exit(0), stop_iteration])
@pytest.mark.parametrize("point", in_loop())
def test_a_hook_that_exits_is_an_error_of_that_hook(build, point, leave):
    run = build([Implements(point, leave)], evaluator={"use": "episodes", "episodes": 1}, write=True)
    with pytest.raises(HookError, match=rf"'Implements-1'.*point '{point}'.*exit"):
        run.trainer.train()


# stopping


def test_after_a_stop_request_all_other_hooks_of_the_iteration_run(build):
    names = []

    class Stop:
        @hookimpl
        def batch_process(self, trainer):
            trainer.request_stop("enough")
            trainer.request_stop("a second reason")

    class Rest:
        def __init__(self):
            for point in in_loop():
                if point != "optimizer":
                    setattr(self, point, hookimpl(self.noting(point)))

        def noting(self, point):
            return lambda: names.append(point) if point not in names else None

    run = build([Stop(), Rest()], write=True, checkpoint={"every": 1000}, run={"total_frames": 960})
    run.trainer.train()
    assert run.trainer.progress.frames == 32
    assert run.trainer.stop_reason == "enough", "the first reason counts"
    expected = [point for point in in_loop() if point not in ("optimizer", "evaluation", "episode_end")]
    assert sorted(set(names) - {"episode_end"}) == sorted(expected)
    assert run.trainer.last_checkpoint.name.startswith("000000000032-"), "the final checkpoint is saved"


# what is resolved once


def test_used_says_whether_a_hook_implements_a_point(build):
    hooks = build([returning("post_loss", None)]).trainer.hooks
    assert {name for name in POINTS if hooks.used(name)} == {"post_loss"}
    assert not any(LoopHooks().used(name) for name in POINTS)


def test_unused_points_hand_the_value_through_untouched():
    hooks = LoopHooks()
    value, learner = {"loss_a": torch.zeros(())}, object()
    assert hooks.post_loss(value, {}, learner) is value
    assert hooks.process_optim_batch(value, learner) is value
    assert hooks.post_optim_log(value, {}, learner) is value
    assert hooks.batch_process(value, learner) is value
    assert hooks.pre_steps_log(value, learner) == {}


def test_functions_are_looked_up_once(build):
    hook = returning("post_steps", None)
    run = build([hook])
    hook.post_steps = hookimpl(lambda: 1 / 0)  # too late: replaced after the run was built
    assert run.trainer.train().frames == 96


def test_wrong_return_says_what_to_do():
    hooks = LoopHooks([Hook("clip", returning("post_loss", 3), "some-plugin 1.2")])
    with pytest.raises(HookError) as raised:
        hooks.post_loss({}, {}, None)
    assert str(raised.value) == (
        "hook 'clip' (some-plugin 1.2) at point 'post_loss' returned int; expected a mapping of tensors, or None. "
        "Return the new value, or None to leave it as it is."
    )
