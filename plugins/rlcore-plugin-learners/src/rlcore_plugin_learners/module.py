"""The networks of one policy: `RLModule`, the one that is built by default, and what says which to build."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError, did_you_mean
from rlcore.run import published
from rlcore.types import Context, EnvSpec
from rlcore_plugin_learners.actions import ActionDistributions
from rlcore_plugin_learners.columns import Columns

Batch = Mapping[str, Tensor]

# modules draw their weights from torch's global generator, which is one for all threads
_SEEDING: Final = threading.Lock()


class RLModule(nn.Module):
    """The networks of one policy. A subclass builds them in `setup` and computes with them in `_forward`.

    Args:
        observation_space: of one env.
        action_space: of one env.
        model_config: settings, for `setup`.

    Attributes:
        observation_space: as given.
        action_space: as given.
        model_config: as given.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any] | None = None,
        action_space: gymnasium.Space[Any] | None = None,
        model_config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.observation_space = observation_space
        self.action_space = action_space
        self.model_config = dict(model_config or {})
        self.setup()
        self.eval()  # who acts uses it so; a learner puts layers such as dropout into training mode for its losses

    def setup(self) -> None:
        """Build the networks; weights may come from torch's global generator, which is seeded here and put back."""

    def forward(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return what `forward_train` does."""
        return self.forward_train(batch)

    def forward_train(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return what losses need of the columns `[row, ...]`, such as `action_dist_inputs` and `vf_preds`."""
        return self._forward_train(batch)

    def forward_exploration(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return what collecting needs, without gradients."""
        with torch.no_grad():
            return self._forward_exploration(batch)

    def forward_inference(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return what acting greedily needs, without gradients."""
        with torch.no_grad():
            return self._forward_inference(batch)

    def _forward(self, batch: Batch) -> Mapping[str, Tensor]:
        raise NotImplementedError(f"{type(self).__name__} has no _forward")

    def _forward_train(self, batch: Batch) -> Mapping[str, Tensor]:
        return self._forward(batch)

    def _forward_exploration(self, batch: Batch) -> Mapping[str, Tensor]:
        return self._forward(batch)

    def _forward_inference(self, batch: Batch) -> Mapping[str, Tensor]:
        return self._forward(batch)

    def get_train_action_dist_cls(self) -> ActionDistributions:
        """Return the distributions that `action_dist_inputs` pick: by default those of the action space."""
        from rlcore_plugin_mlp.spaces import for_space

        if self.action_space is None:
            raise ConfigError(f"{type(self).__name__} has no action_space, which says what its actions are")
        device = next((parameter.device for parameter in self.parameters()), torch.device("cpu"))
        return ActionDistributions(for_space(self.action_space, device))

    def get_state(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return copies of the weights by name."""
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.state_dict().items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Set the weights.

        Args:
            state: arrays or tensors by name, all of them.

        Raises:
            ConfigError: it is of another module.
        """
        try:
            self.load_state_dict({name: torch.as_tensor(value) for name, value in state.items()})
        except RuntimeError as error:
            raise ConfigError(f"the state does not fit {type(self).__name__}: {error}") from None


class ModelRLModule(RLModule):
    """A model of rlcore with actor and critic, such as `mlp`.

    `model_config` is its section of a config: `{"use": "mlp", "hidden": [64, 64]}`, `use` being `mlp` by default. It
    returns `action_dist_inputs` and, with a critic, `vf_preds` `[row]`.
    """

    model: Any

    def setup(self) -> None:
        """Build the model."""
        if self.observation_space is None or self.action_space is None:
            raise ConfigError("no spaces to build a module for: hand over env=, or spaces in its RLModuleSpec")
        config = dict(self.model_config)
        component = published("model", config.pop("use", "mlp"))
        schema = component.schema()
        for name in config:
            if name not in schema.model_fields:
                guess = did_you_mean(name, schema.model_fields)
                raise ConfigError(f"model_config: {component} has no key {name!r}{guess}")
        context = Context.alone("learner", seed=torch.initial_seed()).for_component("model", "model")
        context.parts["env_spec"] = EnvSpec("learner", self.observation_space, self.action_space, 1)
        self.model = component.build(schema.model_validate(config), context)
        self._has_critic = "critic" in self.model.parts()

    def _forward(self, batch: Batch) -> Mapping[str, Tensor]:
        return {Columns.ACTION_DIST_INPUTS: self.model.actor(batch[Columns.OBS])}

    def _forward_train(self, batch: Batch) -> Mapping[str, Tensor]:
        returned = dict(self._forward(batch))
        if self._has_critic:
            returned[Columns.VF_PREDS] = self.model.critic(batch[Columns.OBS]).squeeze(-1)
        return returned

    def get_train_action_dist_cls(self) -> ActionDistributions:
        """Return the distributions of the actor."""
        return ActionDistributions(self.model.actor.distribution)


@dataclass
class RLModuleSpec:
    """Says how a module is built; what is None follows from the config of the learner.

    Attributes:
        module_class: a subclass of `RLModule`; default: `ModelRLModule`.
        observation_space: of one env.
        action_space: of one env.
        model_config: settings of the module.
    """

    module_class: type[RLModule] | None = None
    observation_space: gymnasium.Space[Any] | None = None
    action_space: gymnasium.Space[Any] | None = None
    model_config: dict[str, Any] = field(default_factory=dict)

    def build(self, seed: int = 0) -> RLModule:
        """Return the module.

        Args:
            seed: of its weights.
        """
        with _SEEDING, torch.random.fork_rng([]):
            torch.manual_seed(seed)
            kind = self.module_class or ModelRLModule
            return kind(self.observation_space, self.action_space, self.model_config)
