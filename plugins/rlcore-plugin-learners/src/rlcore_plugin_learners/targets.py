"""Target networks of modules: made when a learner is built, and moved after its steps."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from rlcore.errors import ConfigError
from rlcore.learners import TargetUpdater
from rlcore_plugin_learners.apis import TargetNetworkAPI
from rlcore_plugin_learners.columns import LIFETIME_STEPS
from rlcore_plugin_learners.multi import MultiRLModuleSpec
from rlcore_plugin_learners.torch_learner import TorchLearner

log = logging.getLogger(__name__)

_LAST: Final = "last_target_updates"


class TargetLearner(TorchLearner):
    """Moves the target networks of modules by `tau`, every `target_network_update_freq` on a clock of `timesteps`.

    Attributes:
        clock: name of that clock.
        last_update_ts_by_mid: what it said when the networks of a module moved last.
    """

    clock: ClassVar[str] = LIFETIME_STEPS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.last_update_ts_by_mid: dict[str, int] = {}
        self._movers: dict[str, TargetUpdater] = {}
        self._has_told = False

    @classmethod
    def rl_module_required_apis(cls) -> list[type]:
        """Return classes that a module has to be of."""
        return [TargetNetworkAPI]

    def _begin_module(self, module_id: str) -> None:
        super()._begin_module(module_id)
        module = self.module[module_id]
        if not self.rl_module_is_compatible(module):
            if not self.should_module_be_updated(module_id):
                return
            lacking = [kind.__name__ for kind in self.rl_module_required_apis() if not isinstance(module, kind)]
            raise ConfigError(
                f"module {module_id!r}: {type(module).__name__} is no {' and no '.join(lacking)}, which "
                f"{type(self).__name__} asks for; derive it from there, or leave it out of policies_to_train"
            )
        if isinstance(module, TargetNetworkAPI):
            module.make_target_networks()
            self._movers[module_id] = TargetUpdater(module.get_target_network_pairs())
            self.last_update_ts_by_mid[module_id] = 0

    def remove_module(self, module_id: str, **kwargs: Any) -> MultiRLModuleSpec:
        """Take a module out, with what belongs to it, and return how to build what is left."""
        left = super().remove_module(module_id, **kwargs)
        self._movers.pop(module_id, None)
        self.last_update_ts_by_mid.pop(module_id, None)
        return left

    def after_gradient_based_update(self, *, timesteps: dict[str, int]) -> None:
        """Move the target networks that are due, besides what every learner does."""
        super().after_gradient_based_update(timesteps=timesteps)
        now = timesteps.get(self.clock, 0)
        for module_id, targets in self._movers.items():
            config: Any = self.config.get_config_for_module(module_id)
            interval = self.target_interval(config)
            self._tell_without_clock(interval, timesteps)
            if now - self.last_update_ts_by_mid[module_id] < interval:
                continue
            targets.tau = config.tau
            targets.update()
            self.last_update_ts_by_mid[module_id] = now
            self.metrics.log_value((module_id, "num_target_updates"), 1, reduce="lifetime_sum")
            self.metrics.log_value((module_id, "last_target_update_ts"), now, reduce="max")

    def target_interval(self, config: Any) -> float:
        """Return how far the clock goes between two moves, by the settings of a module."""
        return float(config.target_network_update_freq)

    def _tell_without_clock(self, interval: float, timesteps: Mapping[str, int]) -> None:
        if interval > 0 and self.clock not in timesteps and not self._has_told:
            self._has_told = True
            log.warning(
                "%s: target networks stay as they are until update is told the clock that they follow, "
                "timesteps={%r: ...}",
                type(self).__name__,
                self.clock,
            )

    def get_extra_state(self) -> dict[str, Any]:
        """Return when target networks moved, besides what other learners save."""
        return super().get_extra_state() | {_LAST: dict(self.last_update_ts_by_mid)}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Set it."""
        super().set_extra_state(state)
        self.last_update_ts_by_mid |= {name: int(value) for name, value in state.get(_LAST, {}).items()}


def check_targets(config: Any) -> None:
    """Refuse settings of target networks that fit nothing.

    Raises:
        ConfigError: there are some.
    """
    if not 0 < config.tau <= 1:
        raise ConfigError(f"tau is {config.tau!r}; it is above 0, and 1 at most, which copies")
    if not config.target_network_update_freq >= 0:
        raise ConfigError(f"target_network_update_freq is {config.target_network_update_freq!r}; it is 0 or above")
