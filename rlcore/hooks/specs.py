"""Every point that a plugin can implement: when it is called, with what, and what its return value does.

Each spec's kind is declared beside it (`@point(kind, where)`):

* `pipeline`: the first argument is the value; return the new one, or None to leave it as it is.
* `collect`: return a mapping of metrics, or None; the mappings are merged.
* `notify`: must return None.
* `owner`: exactly one implementation, whose answer counts.

Outer points run in the trainer, inner points where the learner runs. Every argument may be left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types import Episode, EvaluationResult, Key, Learner
    from rlcore.types.trainer import Trainer

PROJECT: Final = "rlcore"
hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)

PointKind = Literal["pipeline", "collect", "notify", "owner"]
Where = Literal["outer", "inner", "life"]
Spec = TypeVar("Spec", bound=Callable[..., Any])


@dataclass(frozen=True)
class Point:
    """What is known of a loop point without an implementation."""

    name: str
    kind: PointKind
    where: Where
    arguments: tuple[str, ...]
    doc: str


POINTS: Final[dict[str, Point]] = {}


def point(kind: PointKind, where: Where) -> Callable[[Spec], Spec]:
    """Declare a loop point of this kind."""

    def declare(function: Spec) -> Spec:
        name = function.__name__
        arguments = tuple(inspect.signature(function).parameters)[1:]
        POINTS[name] = Point(name, kind, where, arguments, inspect.getdoc(function) or "")
        return hookspec(function)

    return declare


class LoopSpecs:
    """Called in every iteration."""

    @point("pipeline", "outer")
    def batch_process(self, batch: TensorDict, trainer: Trainer) -> TensorDict | None:
        """Change a batch `[env, time]` after collection, before the buffer takes it."""

    @point("collect", "outer")
    def pre_steps_log(self, batch: TensorDict, trainer: Trainer) -> Mapping[str, Any] | None:
        """Return metrics of the batch, before optimisation."""

    @point("notify", "outer")
    def pre_optim_steps(self, batch: TensorDict, trainer: Trainer) -> None:
        """Called before the first epoch."""

    @point("collect", "inner")
    def pre_epoch_log(self, batch: TensorDict, learner: Learner) -> Mapping[str, Any] | None:
        """Return metrics of the batch, before each epoch."""

    @point("pipeline", "inner")
    def pre_epoch(self, batch: TensorDict, learner: Learner) -> TensorDict | None:
        """Change the batch before an epoch; an estimator with `every = "epoch"` runs after this point."""

    @point("pipeline", "inner")
    def process_optim_batch(self, minibatch: Mapping[Key, Tensor], learner: Learner) -> Mapping[Key, Tensor] | None:
        """Change a minibatch `[sample]` before the loss."""

    @point("pipeline", "inner")
    def post_loss(
        self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> dict[str, Tensor] | None:
        """Change the losses before backward."""

    @point("owner", "inner")
    def optimizer(
        self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> Mapping[str, Tensor]:
        """Do backward and step in place of the learner, and return metrics. One hook only."""
        raise NotImplementedError

    @point("notify", "inner")
    def post_optim(self, minibatch: Mapping[Key, Tensor], learner: Learner) -> None:
        """Called after the step of the optimizers."""

    @point("collect", "inner")
    def post_optim_log(
        self, metrics: Mapping[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> Mapping[str, Any] | None:
        """Return further metrics of an optimisation step. Tensors stay on their device until they are written."""

    @point("collect", "inner")
    def post_epoch_log(self, batch: TensorDict, learner: Learner) -> Mapping[str, Any] | None:
        """Return metrics after the minibatches of each epoch."""

    @point("notify", "inner")
    def post_epoch(self, batch: TensorDict, learner: Learner) -> None:
        """Called after the minibatches of an epoch."""

    @point("collect", "outer")
    def post_optim_complete_log(
        self, updates: int, losses: Mapping[str, Tensor], trainer: Trainer
    ) -> Mapping[str, Any] | None:
        """Return metrics after all epochs: `updates` of the run so far, `losses` averaged over this iteration."""

    @point("notify", "outer")
    def post_steps(self, batch: TensorDict, trainer: Trainer) -> None:
        """Called after all epochs."""

    @point("collect", "outer")
    def post_steps_log(self, batch: TensorDict, trainer: Trainer) -> Mapping[str, Any] | None:
        """Return metrics of the iteration, after optimisation."""


class LifeSpecs:
    """Called at moments of a run."""

    @point("notify", "life")
    def setup(self, trainer: Trainer) -> None:
        """Called when everything is built and restored, before the first frame of this process."""

    @point("notify", "life")
    def episode_end(self, episode: Episode, trainer: Trainer) -> None:
        """Called for each episode that ended during collection: return, length, env index, infos."""

    @point("notify", "life")
    def evaluation(self, result: EvaluationResult, trainer: Trainer) -> None:
        """Called after an evaluation."""

    @point("notify", "life")
    def checkpoint_saved(self, path: Path, trainer: Trainer) -> None:
        """Called after a checkpoint was committed; with `[checkpoint] async` at a later boundary."""

    @point("notify", "life")
    def on_exception(self, error: BaseException, trainer: Trainer) -> None:
        """Called when the run ends with an error, before `shutdown`; cannot stop the error."""

    @point("notify", "life")
    def shutdown(self, trainer: Trainer) -> None:
        """Called at the end of every run, also after an error, in reverse order of the config."""
