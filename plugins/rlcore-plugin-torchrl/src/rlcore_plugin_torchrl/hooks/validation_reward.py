"""Logs the rewards of a policy in an env of its own, at intervals."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import torch
from tensordict.nn import InteractionType, set_interaction_type

from rlcore.errors import HookArgumentError
from rlcore.types import Key, Part, Stateful, offers, with_defaults
from rlcore_plugin_torchrl.hooks.entries import REWARD, entry
from rlcore_plugin_torchrl.hooks.stock import StockHook
from rlcore_plugin_torchrl.protocols import Dumps, RollsOut, WithTrainingMode, WithTransform

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

_DONE: Final[Key] = ("next", "done")


class LogValidationReward(StockHook):
    """Rolls the policy out in an env, without training, and logs what it earned.

    `r_evaluation` is the mean reward of a step divided by `frame_skip`, `total_r_evaluation` the mean of the returns of
    the trajectories, of which the last may be cut off by the end of the rollout.

    Args:
        record_interval: calls between two rollouts; the first call makes one. At the default destination a call is an
            iteration, not an optimisation step.
        record_frames: steps of a rollout; it goes on through the ends of episodes.
        frame_skip: environment frames per step.
        policy_exploration: the policy.
        environment: has `rollout(max_steps, policy, ...)`, which returns a TensorDict `[..., time]`; perhaps `eval`,
            `train`, `state_dict`, `transform.dump(suffix)` and `close`.
        exploration_type: how actions are taken from distributions.
        log_keys: entries to log; default: the reward.
        out_keys: from an entry to the name of its metric; default: `r_evaluation` for the reward, else the key as text.
        suffix: of videos that the env's transform records.
        log_pbar: whether the progress bar shows the metrics.
        recorder: older name of `environment`.

    Raises:
        HookError: no env, two of them, or one that cannot be rolled out; an interval that is not positive.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"post_steps_log": "__call__", "shutdown": "close"})
    default_name: ClassVar[str] = "recorder"

    def __init__(
        self,
        *,
        record_interval: int,
        record_frames: int,
        frame_skip: int = 1,
        policy_exploration: Any,
        environment: Any = None,
        exploration_type: InteractionType = InteractionType.DETERMINISTIC,
        log_keys: Sequence[Key] | None = None,
        out_keys: Mapping[Key, str] | None = None,
        suffix: str | None = None,
        log_pbar: bool = False,
        recorder: Any = None,
    ) -> None:
        if environment is not None and recorder is not None:
            raise HookArgumentError(
                "LogValidationReward: environment and recorder are two names of one argument; give one"
            )
        self.environment: Any = environment if environment is not None else recorder
        if not offers(self.environment, RollsOut):
            kind = type(self.environment).__name__
            raise HookArgumentError(
                f"LogValidationReward: environment: a {kind} has no rollout(max_steps, policy, ...)"
            )
        if record_interval < 1:
            raise HookArgumentError(f"LogValidationReward: record_interval = {record_interval}: expected at least 1")
        if isinstance(log_keys, str):
            raise HookArgumentError(f"LogValidationReward: log_keys = {log_keys!r}: expected a sequence of keys")
        self.record_interval = record_interval
        self.record_frames = record_frames
        self.frame_skip = frame_skip
        self.policy_exploration = policy_exploration
        self.exploration_type = exploration_type
        self.log_keys = tuple(log_keys or (REWARD,))
        self.out_keys = {REWARD: "r_evaluation", **(out_keys or {})}
        self.suffix = suffix
        self.log_pbar = log_pbar
        self._count = 0

    @torch.inference_mode()
    def __call__(self, batch: Any = None) -> dict[str, Any] | None:
        """Return the metrics of a rollout, or None when none is due."""
        self._count += 1
        if (self._count - 1) % self.record_interval:
            return None
        with set_interaction_type(self.exploration_type), _evaluating(self.policy_exploration, self.environment):
            rollout = self._rollout()
        if offers(self.environment, WithTransform) and offers(self.environment.transform, Dumps):
            self.environment.transform.dump(suffix=self.suffix)
        metrics: dict[str, Any] = {"log_pbar": self.log_pbar}
        for key in self.log_keys:
            metrics |= self._metrics_of(key, rollout)
        return metrics

    def close(self) -> None:
        """Close the env, if it can be."""
        with_defaults(self.environment, Part).close()

    def state_dict(self) -> dict[str, Any]:
        """Return the count of calls, and the state of the env, where it has one."""
        saved = dict(self.environment.state_dict()) if offers(self.environment, Stateful) else {}
        return {"count": self._count, "environment": saved}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set them."""
        self._count = state_dict["count"]
        if state_dict["environment"]:
            self.environment.load_state_dict(state_dict["environment"])

    def _rollout(self) -> TensorDict:
        options = {"auto_reset": True, "auto_cast_to_device": True, "break_when_any_done": False}
        parameters = inspect.signature(self.environment.rollout).parameters
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            options = {name: value for name, value in options.items() if name in parameters}
        return self.environment.rollout(max_steps=self.record_frames, policy=self.policy_exploration, **options)

    def _metrics_of(self, key: Key, rollout: TensorDict) -> dict[str, Any]:
        values = entry(rollout, key, self).float()
        name = self.out_keys.get(key, str(key))
        if key != REWARD:
            return {name: values}
        totals = _totals(values.reshape(-1, *values.shape[rollout.ndim :]), _trajectories(rollout, self))
        return {name: values.mean() / self.frame_skip, f"total_{name}": totals.mean()}


Recorder = LogValidationReward


@contextmanager
def _evaluating(*parts: Any) -> Iterator[None]:
    """Put those that are in training mode into evaluation mode, and back afterwards."""
    changed = [part for part in parts if offers(part, WithTrainingMode) and part.training]
    for part in changed:
        part.eval()
    try:
        yield
    finally:
        for part in changed:
            part.train()


def _trajectories(rollout: TensorDict, hook: object) -> Tensor:
    """Return the number of the trajectory of each step of a rollout `[..., time]`, in one dimension."""
    done = entry(rollout, _DONE, hook).reshape(-1, rollout.batch_size[-1]).clone()
    done[:, -1] = True  # the next row begins another one
    ends = done.reshape(-1).long()
    return ends.cumsum(0) - ends


def _totals(values: Tensor, trajectories: Tensor) -> Tensor:
    """Return the sum of the values of each trajectory."""
    totals = values.new_zeros((int(trajectories[-1]) + 1, *values.shape[1:]))
    return totals.index_add_(0, trajectories, values)
