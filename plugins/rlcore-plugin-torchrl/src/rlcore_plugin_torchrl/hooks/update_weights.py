"""Sends the weights that are trained to a collector that acts with a copy of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import BaseModel, Field

from rlcore.collectors import UpdatesPolicyWeights
from rlcore.errors import HookArgumentError, HookError
from rlcore.types import Context, Progress, offers
from rlcore_plugin_torchrl.hooks.stock import StockHook
from rlcore_plugin_torchrl.protocols import SendsWeights, UpdatesModel

if TYPE_CHECKING:
    from rlcore.types import ScriptTrainer

_ABSENT: Final = object()

IntervalUnit = Literal["batches", "optim_steps"]


class UpdateWeights(StockHook):
    """Calls the collector's `update_policy_weights_`, or `update_model`, or a sender's `update_weights`, at intervals.

    Args:
        collector: that acts with a copy of the weights; not needed beside a sender.
        update_weights_interval: in units of `interval_unit`.
        policy_weights_getter: returns the weights to send; without it the collector knows where to look.
        weight_update_map: from a destination, which the collector knows, to the dotted path of a module on the trainer,
            such as `{"policy": "loss_module.actor_network"}`; goes before `policy_weights_getter`.
        trainer: on which those paths begin; default: the one that it is registered with.
        sender: has `update_weights()`, and takes the place of the collector.
        interval_unit: `batches`, counted at `post_steps`; or `optim_steps`, counted at `post_optim`.

    Raises:
        HookError: an interval that is not positive, another unit, no way to send, or several.

    Attributes:
        counter: batches so far.
    """

    default_name: ClassVar[str] = "update_weights"

    def __init__(
        self,
        collector: Any = None,
        update_weights_interval: int = 1,
        policy_weights_getter: Callable[[], Any] | None = None,
        weight_update_map: Mapping[str, str] | None = None,
        trainer: ScriptTrainer | None = None,
        *,
        sender: Any = None,
        interval_unit: IntervalUnit = "batches",
    ) -> None:
        if update_weights_interval < 1:
            raise HookArgumentError(
                f"UpdateWeights: update_weights_interval = {update_weights_interval}: expected at least 1"
            )
        if interval_unit not in ("batches", "optim_steps"):
            raise HookArgumentError(
                f"UpdateWeights: interval_unit = {interval_unit!r}: expected 'batches' or 'optim_steps'"
            )
        if sender is not None and (policy_weights_getter is not None or weight_update_map is not None):
            raise HookArgumentError("UpdateWeights: a sender knows its weights; leave the getter and the map out")
        self.update_weights_interval = update_weights_interval
        self.interval_unit = interval_unit
        self.weight_update_map = weight_update_map
        self.trainer = trainer
        self.counter = 0
        self._last_update_count = 0
        self._progress: Progress | None = None if trainer is None else trainer.progress
        self._send = _way_to_send(collector, sender)
        self._getter = policy_weights_getter

    def attach(self, trainer: ScriptTrainer) -> None:
        """Count the optimisation steps of this trainer, and find modules on it, unless another was handed over."""
        self.trainer = self.trainer or trainer
        self._progress = self.trainer.progress

    def register(self, trainer: ScriptTrainer, name: str | None = None) -> None:
        """Register it at the point of its unit."""
        trainer.register_module(name or self.default_name, self)
        trainer.register_op(next(iter(self.places())), self)

    def places(self) -> dict[str, str]:
        """Return the destination of its unit with the name of the method."""
        return {"post_optim" if self.interval_unit == "optim_steps" else "post_steps": "__call__"}

    def __call__(self) -> None:
        """Send the weights, if the interval is over.

        Raises:
            HookError: it must know the trainer and does not, or a path leads nowhere.
        """
        if not self._is_due():
            return
        if self.weight_update_map is not None:
            self._send(weights_dict={to: self._weights_at(to, path) for to, path in self.weight_update_map.items()})
            return
        weights = None if self._getter is None else self._getter()
        self._send(*(() if weights is None else (weights,)))

    def state_dict(self) -> dict[str, Any]:
        """Return the counts."""
        return {"counter": self.counter, "last_update_count": self._last_update_count}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the counts."""
        self.counter = state_dict["counter"]
        self._last_update_count = state_dict["last_update_count"]

    def _is_due(self) -> bool:
        if self.interval_unit == "batches":
            self.counter += 1
            return self.counter % self.update_weights_interval == 0
        if self._progress is None:
            raise HookError(
                "UpdateWeights: optimisation steps are the trainer's; hand it over, or call register(trainer)"
            )
        if self._progress.updates - self._last_update_count < self.update_weights_interval:
            return False
        self._last_update_count = self._progress.updates
        return True

    def _weights_at(self, destination: str, path: str) -> Any:
        from tensordict import TensorDict

        target: Any = self.trainer
        if target is None:
            raise HookArgumentError(
                "UpdateWeights: weight_update_map begins at a trainer; hand it over, or call register(trainer)"
            )
        for name in path.split("."):
            owner, target = target, getattr(target, name, _ABSENT)  # a path may name anything
            if target is _ABSENT:
                place = f"UpdateWeights: weight_update_map[{destination!r}] = {path!r}"
                raise HookError(f"{place}: a {type(owner).__name__} has no {name!r}")
        return TensorDict.from_module(target)


def _way_to_send(collector: Any, sender: Any) -> Callable[..., Any]:
    """Return what is called to send weights."""
    if offers(sender, SendsWeights):
        return sender.update_weights
    if offers(collector, UpdatesPolicyWeights):
        return collector.update_policy_weights_
    if offers(collector, UpdatesModel):
        return collector.update_model
    if sender is not None:
        raise HookArgumentError(f"UpdateWeights: a {type(sender).__name__} has no update_weights()")
    if collector is not None:
        raise HookArgumentError(
            f"UpdateWeights: a {type(collector).__name__} has neither update_policy_weights_() nor update_model()"
        )
    raise HookArgumentError("UpdateWeights: hand a collector or a sender over")


class UpdateWeightsConfig(BaseModel, extra="forbid"):
    """How often, besides once after each batch."""

    interval: int = Field(1, ge=1, description="in units of `unit`")
    unit: IntervalUnit = Field("optim_steps", description="what the interval counts")


def from_config(config: UpdateWeightsConfig, context: Context) -> Any:
    """Return the hook of a config."""
    hook = UpdateWeights(context.collector, config.interval, interval_unit=config.unit)
    return hook.as_component(hook.places())
