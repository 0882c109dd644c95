"""Trainers that learn from what the policy of today collected."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from rlcore.errors import ConfigError, MissingPluginError
from rlcore.types import offers
from rlcore_plugin_torchrl.algorithms.base import NamedTrainer
from rlcore_plugin_torchrl.algorithms.recipes import A2C, PPO, REINFORCE, Recipe
from rlcore_plugin_torchrl.hooks.lr_scheduler import LRSchedulerHook
from rlcore_plugin_torchrl.hooks.value_estimator import ValueEstimatorHook
from rlcore_plugin_torchrl.protocols import TakesKeys, WithWeightSchemes

if TYPE_CHECKING:
    from rlcore_plugin_torchrl.algorithms.arguments import OnPolicyArguments

log = logging.getLogger(__name__)


class OnPolicyTrainer(NamedTrainer):
    """Estimates advantages of each batch, and takes optimisation steps on sub-batches of it.

    Args:
        arguments: those of `Trainer`; `lr_scheduler`, stepped after each batch; `gae`, an estimator, or `add_gae`,
            `gamma` and `lmbda` for one of TorchRL over `loss_module.critic_network`; `weight_update_map`, see
            `UpdateWeights`, for a collector with weight-sync schemes; `enable_logging`, `log_rewards`, `log_actions`,
            `log_observations`; the names of entries, `done_key`, `terminated_key`, `reward_key`, `episode_reward_key`,
            `action_key`, `observation_key`.

    Raises:
        ConfigError: `gae` is handed over and `add_gae` is False, or `weight_update_map` does not name the collector's
            destinations.
        MissingPluginError: an estimator has to be made, and TorchRL is not installed.
    """

    recipe: ClassVar[Recipe] = A2C

    if TYPE_CHECKING:  # keywords for editors; the base has the one constructor

        def __init__(
            self, *, collector: Any, total_frames: int | None, **arguments: Unpack[OnPolicyArguments]
        ) -> None: ...

    def prepare(self, collector: Any, arguments: dict[str, Any]) -> None:
        """Refuse two answers to one question."""
        if arguments.pop("batch_size", None) is not None:
            log.warning("%s: batch_size is not used; set that of the replay buffer", type(self).__name__)
        if self.options["gae"] is not None and not self.options["add_gae"]:
            raise ConfigError("gae must not be handed over with add_gae = False; leave one of the two out")

    def before_replay(self) -> None:
        """Estimate advantages before each epoch, and step the schedule of the learning rate."""
        if self.options["add_gae"]:
            ValueEstimatorHook(self._estimator()).register(self)
        if self.options["lr_scheduler"] is not None:
            LRSchedulerHook(self.options["lr_scheduler"]).register(self)

    def register_replay(self, buffer: Any) -> Any:
        """Extend and sample from the buffer, and say so if it would not sample each step once."""
        sampler = getattr(buffer, "sampler", None)  # one of TorchRL has it
        kinds = {kind.__name__ for kind in type(sampler).__mro__}
        if not self.async_collection and "SamplerWithoutReplacement" not in kinds:
            log.warning(
                "%s: the buffer samples with a %s; only a SamplerWithoutReplacement uses each step once per epoch",
                type(self).__name__,
                type(sampler).__name__,
            )
        return super().register_replay(buffer)

    def register_sending(self) -> None:
        """Send the weights that the collector's schemes name, or those of the policy."""
        schemes = self.collector._weight_sync_schemes if offers(self.collector, WithWeightSchemes) else None
        where = self.options["weight_update_map"]
        if not schemes:
            if where is not None:
                log.warning("weight_update_map is not used: the collector has no weight-sync schemes")
            super().register_sending()
            return
        if where is None or set(where) != set(schemes):
            raise ConfigError(
                f"weight_update_map must name the destinations of the collector, {', '.join(map(str, schemes))}; it "
                f"names {', '.join(where or ()) or 'none'}"
            )
        self.send(weight_update_map=where, trainer=self)

    def _estimator(self) -> Any:
        estimator = self.options["gae"] or self._gae()
        if offers(estimator, TakesKeys):
            estimator.set_keys(**{name: self.key(name) for name in ("reward", "done", "terminated")})
        return estimator

    def _gae(self) -> Any:
        try:
            from torchrl.objectives.value.advantages import GAE  # type: ignore[import-untyped]
        except ImportError as error:
            raise MissingPluginError(
                f"{type(self).__name__} makes TorchRL's GAE, which is not here: pip install torchrl, or hand an "
                "estimator over as gae, or leave it out with add_gae = False"
            ) from error
        gamma, lmbda = self.options["gamma"], self.options["lmbda"]
        return GAE(gamma=gamma, lmbda=lmbda, value_network=self.loss_module.critic_network, average_gae=True)


class A2CTrainer(OnPolicyTrainer):
    """Advantage actor-critic: one epoch per batch."""

    recipe = A2C


class PPOTrainer(OnPolicyTrainer):
    """Proximal policy optimisation: four epochs per batch."""

    recipe = PPO


class ReinforceTrainer(OnPolicyTrainer):
    """REINFORCE with a baseline: one epoch per batch."""

    recipe = REINFORCE
