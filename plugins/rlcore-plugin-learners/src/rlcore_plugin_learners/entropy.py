"""The weight of the entropy in a loss, which may follow a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from rlcore_plugin_learners.columns import LIFETIME_STEPS, Columns
from rlcore_plugin_learners.multi import MultiRLModuleSpec
from rlcore_plugin_learners.steps import Scheduled
from rlcore_plugin_learners.torch_learner import TorchLearner

_WEIGHTS: Final = "curr_entropy_coeffs_per_module"


class EntropyLearner(TorchLearner):
    """Keeps the weight of the entropy, `entropy_coeff` of the config, for each module with actor and critic.

    Attributes:
        curr_entropy_coeffs_per_module: the weight by module, 0-d tensors, where it follows a schedule.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.curr_entropy_coeffs_per_module: dict[str, Tensor] = {}
        self._entropy_schedules: dict[str, Scheduled] = {}

    def _begin_module(self, module_id: str) -> None:
        super()._begin_module(module_id)
        coefficient = self.config.get_config_for_module(module_id).entropy_coeff
        self._entropy_schedules[module_id] = schedule = Scheduled(coefficient, "entropy_coeff")
        if not isinstance(coefficient, int | float):
            first = schedule.at(self.timesteps.get(LIFETIME_STEPS, 0))
            self.curr_entropy_coeffs_per_module[module_id] = torch.tensor(first, device=self.device)

    def remove_module(self, module_id: str, **kwargs: Any) -> MultiRLModuleSpec:
        """Take a module out, with what belongs to it, and return how to build what is left."""
        left = super().remove_module(module_id, **kwargs)
        self.curr_entropy_coeffs_per_module.pop(module_id, None)
        self._entropy_schedules.pop(module_id, None)
        return left

    def entropy_weight(self, module_id: str, config: Any) -> Tensor | float:
        """Return the weight for a module now."""
        weight: Tensor | float = self.curr_entropy_coeffs_per_module.get(module_id, config.entropy_coeff)
        return weight

    def follow_entropy(self, timesteps: Mapping[str, int]) -> None:
        """Let the weights follow their schedules; a learner calls this before or after its steps."""
        for module_id, schedule in self._entropy_schedules.items():
            weight = schedule.at(timesteps.get(LIFETIME_STEPS, 0))
            self.metrics.log_value((module_id, "curr_entropy_coeff"), weight, window=1)
            if module_id in self.curr_entropy_coeffs_per_module:
                self.curr_entropy_coeffs_per_module[module_id].fill_(weight)

    def values(self, module: Any, batch: Mapping[str, Any], fwd_out: Mapping[str, Tensor]) -> Tensor:
        """Return what the critic says of each row, `[row]`: of the forward pass, or else of `compute_values`."""
        if Columns.VF_PREDS in fwd_out:
            return fwd_out[Columns.VF_PREDS]
        values: Tensor = module.compute_values(batch, embeddings=fwd_out.get(Columns.EMBEDDINGS))
        return values

    def get_extra_state(self) -> dict[str, Any]:
        """Return the weights."""
        weights = {name: float(weight) for name, weight in self.curr_entropy_coeffs_per_module.items()}
        return super().get_extra_state() | {_WEIGHTS: weights}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Set them."""
        super().set_extra_state(state)
        for module_id, value in state.get(_WEIGHTS, {}).items():
            self.curr_entropy_coeffs_per_module[module_id].fill_(value)
