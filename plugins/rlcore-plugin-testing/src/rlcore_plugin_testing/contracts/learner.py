"""What a learner must keep: steps that lower the loss, skips that change nothing, schedules, hooks, exact resumes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from rlcore_plugin_gradient.targets import TargetUpdater
from torch import Tensor

from rlcore.errors import NumericalError
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.hooks.specs import hookimpl
from rlcore.types import Stateful
from rlcore.types.context import Context
from rlcore.types.part import defines
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.contracts.base import ComponentContract, saved
from rlcore_plugin_testing.contracts.data import minibatch

INNER = ["process_optim_batch", "post_loss", "post_optim", "post_optim_log"]


class LearnerContract(ComponentContract):
    """Base of the tests of a learner."""

    kind = "learner"

    def test_update_returns_numbers_on_the_device(self) -> None:
        """Metrics are 0-d tensors without a graph; nothing is read back per step."""
        context = self.bench()
        values = self.make(context).update(minibatch(context))
        assert any(name.startswith("loss_") for name in values), f"no loss among the metrics: {', '.join(values)}"
        for name, value in values.items():
            assert isinstance(value, Tensor), f"{name} is a {type(value).__name__}; leave it a tensor"
            assert value.ndim == 0, f"{name} has shape {list(value.shape)}"
            assert not value.requires_grad, f"{name} carries a graph; detach it"

    def test_updates_lower_the_loss(self) -> None:
        """Steps on one minibatch go downhill, and each counts as one update."""
        context = self.bench()
        learner, entries = self.make(context), minibatch(context)
        totals = [_total(learner.update(entries)) for _ in range(30)]
        assert totals[-1] < totals[0], f"30 updates on one minibatch went from {totals[0]:.4f} to {totals[-1]:.4f}"
        assert context.progress.updates == 30, (
            f"30 updates count as {context.progress.updates}; add to progress.updates"
        )

    def test_a_step_that_is_not_finite_changes_nothing(self) -> None:
        """It is skipped, found at the end of the iteration, and forgotten after it was reported."""
        context = self.bench()
        learner, good = self.make(context), minibatch(context)
        learner.update(good)
        before = _weights(context)
        bad = {key: good[key] for key in good}
        bad["advantage"] = torch.full_like(good["advantage"], torch.nan)
        bad["value_target"] = torch.full_like(good["value_target"], torch.nan)
        learner.update(bad)
        assert difference(before, _weights(context)) is None, "a step with a loss that is not finite changed parameters"
        with pytest.raises(NumericalError):
            learner.end_iteration()
        learner.update(good)
        learner.end_iteration()

    def test_schedules_move_at_the_end_of_an_iteration(self) -> None:
        """The scheduled numbers are those of the optimizers, and are logged."""
        context = self.bench(around={"scheduler": [{"use": "linear"}]})
        learner, entries = self.make(context), minibatch(context)
        learner.update(entries)
        initial = dict(learner.scheduled())
        context.progress.frames = context.run.total_frames // 2
        learner.end_iteration()
        after = dict(learner.scheduled())
        assert initial, "scheduled() returns nothing; return the learning rates"
        assert after == {name: value / 2 for name, value in initial.items()}, f"half way the rates are {after}"
        for optimizer in context.optimizers.values():
            assert optimizer.param_groups[0]["lr"] in after.values(), "the optimizer does not have the scheduled rate"

    def test_moves_the_targets_of_the_loss(self) -> None:
        """A loss with target networks counts on it, after each step; the place in their interval outlives a resume."""
        context = self.bench()
        loss, model, entries = context.built["loss"], context.built["model"], minibatch(context)
        target = copy.deepcopy(model.critic)
        loss.target_updater = TargetUpdater([(model.critic, target)], interval=3)
        used, moved = self.make(context), []
        for _ in range(3):
            used.update(entries)
            moved.append(difference(dict(target.state_dict()), dict(model.critic.state_dict())) is None)
        assert moved == [False, False, True], (
            "a target that is copied after 3 steps was equal after each of them: "
            f"{moved}; call loss.target_updater.step() once after each step"
        )
        used.update(entries)
        state = saved(used)
        loss.target_updater.steps = 0
        if state is not None:
            used.load_state_dict(state)
        assert loss.target_updater.steps == 4, "the learner does not save loss.target_updater; put it in state_dict()"

    def test_hooks_are_called_around_the_step(self) -> None:
        """In the order of the loop, and what they return is used."""
        context = self.bench()
        spy = _Spy()
        context.built["hooks"] = LoopHooks([Hook("spy", spy)])
        learner = self.make(context)
        values = learner.update(minibatch(context))
        assert spy.calls == INNER, f"the inner points were called as {spy.calls}, not {INNER}"
        assert float(values["loss_critic"]) == 7.0, "what post_loss returns is not what is minimised and logged"
        assert "spied" in values, "what post_optim_log returns is not logged"

    def test_goes_on_exactly_after_a_resume(self) -> None:
        """With model, optimizers and progress restored, the next update is the same to the bit."""
        around = {"scheduler": [{"use": "linear"}]}
        first, second = self.bench(around=around), self.bench(around=around)
        used, entries = self.make(first), minibatch(first)
        for _ in range(3):
            used.update(entries)
        first.progress.frames = 16
        used.end_iteration()
        states = {name: saved(part) for name, part in _stateful(first, used).items()}
        other = self.make(second)
        for name, part in _stateful(second, other).items():
            part.load_state_dict(states[name])
        assert dict(used.scheduled()) == dict(other.scheduled()), "the schedules do not follow the restored progress"
        values = [dict(learner.update(entries)) for learner in (used, other)]
        where = difference(values[0], values[1]) or difference(_weights(first), _weights(second))
        assert where is None, f"the update after a resume differs: {where}"


class _Spy:
    """Notes the inner points, and replaces a loss."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @hookimpl
    def process_optim_batch(self, minibatch: Any) -> None:
        self.calls.append("process_optim_batch")

    @hookimpl
    def post_loss(self, losses: dict[str, Tensor]) -> dict[str, Tensor]:
        self.calls.append("post_loss")
        return {**losses, "loss_critic": losses["loss_critic"] * 0 + 7.0}

    @hookimpl
    def post_optim(self, minibatch: Any) -> None:
        self.calls.append("post_optim")

    @hookimpl
    def post_optim_log(self, metrics: Mapping[str, Tensor]) -> dict[str, float]:
        self.calls.append("post_optim_log")
        return {"spied": 1.0}


def _stateful(context: Context, learner: Any) -> dict[str, Any]:
    parts = {"progress": context.progress, "model": context.model, **context.optimizers}
    return {**parts, "learner": learner} if defines(learner, Stateful.state_dict) else parts


def _total(values: Mapping[str, Tensor]) -> float:
    return sum(float(value) for name, value in values.items() if name.startswith("loss_"))


def _weights(context: Context) -> list[Tensor]:
    model: Any = context.model
    return [parameter.detach().clone() for parameter in model.parameters()]
