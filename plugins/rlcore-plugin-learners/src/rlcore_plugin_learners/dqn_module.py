"""The Q-network of DQN's modules, and its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import torch
from rlcore_plugin_dqn.network import CategoricalQNetwork
from torch import Tensor

from rlcore.errors import NotSupportedError
from rlcore_plugin_learners.apis import QNetAPI, TargetNetworkAPI
from rlcore_plugin_learners.columns import Columns
from rlcore_plugin_learners.model_config import as_section
from rlcore_plugin_learners.module import RLModule, model_of
from rlcore_plugin_learners.q_learning import (
    ATOMS,
    QF_LOGITS,
    QF_NEXT_PREDS,
    QF_PREDS,
    QF_PROBS,
    QF_TARGET_NEXT_PREDS,
    QF_TARGET_NEXT_PROBS,
)
from rlcore_plugin_learners.steps import Scheduled

if TYPE_CHECKING:
    from torch import nn

# settings of the algorithm in `model_config`; what is left is a section of a model
_OF_ALGORITHM: Final[dict[str, Any]] = {
    "double_q": True, "dueling": True, "epsilon": 0.0, "num_atoms": 1, "std_init": 0.5, "v_max": 10.0, "v_min": -10.0,
}  # fmt: skip


class DefaultDQNTorchRLModule(RLModule, QNetAPI, TargetNetworkAPI):
    """A Q-network of rlcore, `q-network` by default, and its target.

    `model_config` is its section of a config, with `double_q`, `dueling`, `epsilon`, `num_atoms`, `v_min` and `v_max`
    besides. `forward_train` returns `qf_preds` and `qf_target_next_preds` `[row, action]`, with `double_q` also
    `qf_next_preds`; with several atoms `atoms` `[atom]`, and `qf_logits`, `qf_probs`, `qf_target_next_probs`
    `[row, action, atom]`, the first two of `obs` and, with `double_q`, of `new_obs` after them.
    """

    model: Any

    def setup(self) -> None:
        """Build the networks.

        Raises:
            NotSupportedError: the model has noisy layers.
        """
        settings = _OF_ALGORITHM | {
            name: self.model_config[name] for name in _OF_ALGORITHM if name in self.model_config
        }
        self.uses_double_q: bool = settings["double_q"]
        self.uses_dueling: bool = settings["dueling"]
        self.num_atoms: int = settings["num_atoms"]
        self._epsilon = Scheduled(settings["epsilon"], "epsilon")
        of_network = {"duelling": settings["dueling"], "atoms": self.num_atoms}
        if self.num_atoms > 1:
            of_network |= {name: settings[name] for name in ("v_min", "v_max")}
        section = {name: value for name, value in self.model_config.items() if name not in _OF_ALGORITHM}
        self.model = model_of(self, "q-network", {**of_network, **as_section(section)})
        if getattr(self.model.q_values, "noise_size", 0):
            raise NotSupportedError("model_config: noisy layers; a learner brings no noise")

    def make_target_networks(self) -> None:
        """Make the target equal to the network."""
        self.model.target_q_values.load_state_dict(self.model.q_values.state_dict())

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """Return the network and its target."""
        return [(self.model.q_values, self.model.target_q_values)]

    def get_non_inference_attributes(self) -> list[str]:
        """Return the target."""
        return ["model.target_q_values"]

    def compute_q_values(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return `qf_preds` of `obs`; with several atoms also `atoms`, `qf_logits` and `qf_probs`."""
        return self._values(self.model.q_values, batch[Columns.OBS])

    def forward_target(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return what `compute_q_values` does, by the target."""
        return self._values(self.model.target_q_values, batch[Columns.OBS])

    def _values(self, network: Any, observation: Tensor) -> dict[str, Tensor]:
        if not isinstance(network, CategoricalQNetwork):
            return {QF_PREDS: self._allowed(network(observation), observation)}
        logits = network.logits(observation)
        probs, atoms = logits.softmax(-1), network.support
        return {
            ATOMS: atoms,
            QF_LOGITS: logits,
            QF_PROBS: probs,
            QF_PREDS: self._allowed(probs @ atoms, observation),
        }

    def _allowed(self, values: Tensor, observation: Tensor) -> Tensor:
        return values if self.model.action_mask is None else self.model.action_mask(values, observation)

    def _forward_train(self, batch: Mapping[str, Any], **_: Any) -> dict[str, Tensor]:
        observation, following = batch[Columns.OBS], batch[Columns.NEXT_OBS]
        rows = len(observation)
        values = self.compute_q_values(
            {Columns.OBS: torch.cat([observation, following]) if self.uses_double_q else observation}
        )
        with torch.no_grad():
            target = self.forward_target({Columns.OBS: following})
        returned: dict[str, Tensor] = {name: values[name] for name in (ATOMS, QF_LOGITS, QF_PROBS) if name in values}
        returned |= {QF_PREDS: values[QF_PREDS][:rows], QF_TARGET_NEXT_PREDS: target[QF_PREDS]}
        if self.uses_double_q:
            returned[QF_NEXT_PREDS] = values[QF_PREDS][rows:]
        if QF_PROBS in target:
            returned[QF_TARGET_NEXT_PROBS] = target[QF_PROBS]
        return returned

    def _forward_inference(self, batch: Mapping[str, Any], **_: Any) -> dict[str, Tensor]:
        best = self.compute_q_values(batch)[QF_PREDS].argmax(-1)
        return {Columns.ACTIONS: best + self.model.first_action}

    def _forward_exploration(self, batch: Mapping[str, Any], t: int = 0, **_: Any) -> dict[str, Tensor]:
        """Return random actions with the probability `epsilon` after `t` steps, drawn by torch's global generator."""
        values = self.compute_q_values(batch)[QF_PREDS]
        allowed = torch.ones_like(values)
        if self.model.action_mask is not None:
            allowed = self.model.action_mask.allowed(batch[Columns.OBS]).float()
        drawn = torch.multinomial(allowed, 1).squeeze(-1)
        explores = torch.rand(len(values), device=values.device) < self._epsilon.at(t)
        return {Columns.ACTIONS: torch.where(explores, drawn, values.argmax(-1)) + self.model.first_action}
