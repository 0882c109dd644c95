"""The weight of the distance between two policies in a loss, which follows a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from rlcore_plugin_learners.multi import MultiRLModuleSpec
from rlcore_plugin_learners.torch_learner import TorchLearner

_WEIGHTS: Final = "curr_kl_coeffs_per_module"
# the distance in the results
KL: Final = "mean_kl_loss"
KL_COEFF: Final = "curr_kl_coeff"


class KLLearner(TorchLearner):
    """Keeps the weight of the distance, `kl_coeff` of the config at first, for each module.

    Attributes:
        curr_kl_coeffs_per_module: weight of the distance by module, 0-d tensors.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.curr_kl_coeffs_per_module: dict[str, Tensor] = {}

    def _begin_module(self, module_id: str) -> None:
        super()._begin_module(module_id)
        config: Any = self.config.get_config_for_module(module_id)
        self.curr_kl_coeffs_per_module[module_id] = torch.tensor(float(config.kl_coeff), device=self.device)

    def remove_module(self, module_id: str, **kwargs: Any) -> MultiRLModuleSpec:
        """Take a module out, with what belongs to it, and return how to build what is left."""
        left = super().remove_module(module_id, **kwargs)
        self.curr_kl_coeffs_per_module.pop(module_id, None)
        return left

    def follow_kl(self) -> None:
        """Let the weights follow `kl_target`, by the distances that losses logged as `mean_kl_loss`."""
        for module_id, coefficient in self.curr_kl_coeffs_per_module.items():
            config: Any = self.config.get_config_for_module(module_id)
            distance = self.mean_over_group((module_id, KL)) if config.use_kl_loss else None
            if distance is None:
                continue
            if distance > 2 * config.kl_target:
                coefficient.mul_(1.5)
            elif distance < 0.5 * config.kl_target:
                coefficient.mul_(0.5)
            self.metrics.log_value((module_id, KL_COEFF), float(coefficient), window=1)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the weights, besides what other learners save."""
        weights = {module_id: float(weight) for module_id, weight in self.curr_kl_coeffs_per_module.items()}
        return super().get_extra_state() | {_WEIGHTS: weights}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Set them."""
        super().set_extra_state(state)
        for module_id, value in state.get(_WEIGHTS, {}).items():
            self.curr_kl_coeffs_per_module[module_id].fill_(value)
