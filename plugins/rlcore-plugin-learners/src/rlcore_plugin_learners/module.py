"""The networks of one policy: `RLModule`, the one that is built by default, and what says which to build."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import gymnasium
import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError, did_you_mean
from rlcore.run import published
from rlcore.types import Carries, Context, EnvSpec
from rlcore_plugin_learners.actions import ActionDistributions
from rlcore_plugin_learners.checkpointable import Checkpointable
from rlcore_plugin_learners.columns import DEFAULT_MODULE_ID, Columns
from rlcore_plugin_learners.model_config import as_section
from rlcore_plugin_learners.originals import RL_MODULE
from rlcore_plugin_learners.recorded import Recorded
from rlcore_plugin_learners.states import Paths, as_arrays, chosen

if TYPE_CHECKING:
    from rlcore_plugin_learners.multi import MultiRLModule, MultiRLModuleSpec

Batch = Mapping[str, Any]

# modules draw their weights from torch's global generator, which is one for all threads
_SEEDING: Final = threading.RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generator for a while, and put it back."""
    with _SEEDING, torch.random.fork_rng([]):
        torch.manual_seed(seed)
        yield


class RLModule(Carries, Checkpointable, nn.Module):
    """The networks of one policy. A subclass builds them in `setup` and computes with them in `_forward`.

    Args:
        observation_space: of one env.
        action_space: of one env.
        model_config: settings, for `setup`.
        inference_only: whether it only acts, and may leave out what only losses need.

    Attributes:
        observation_space: as given.
        action_space: as given.
        model_config: as given.
        inference_only: as given.
        framework: `torch`.
    """

    original = RL_MODULE
    framework: str = "torch"

    def __init__(
        self,
        observation_space: gymnasium.Space[Any] | None = None,
        action_space: gymnasium.Space[Any] | None = None,
        model_config: Any = None,
        *,
        inference_only: bool = False,
    ) -> None:
        super().__init__()
        self.observation_space = observation_space
        self.action_space = action_space
        is_described = is_dataclass(model_config) and not isinstance(model_config, type)
        self.model_config = asdict(model_config) if is_described else dict(model_config or {})
        self.inference_only = inference_only
        self.setup()
        self.eval()  # who acts uses it so; a learner puts layers such as dropout into training mode for its losses

    def setup(self) -> None:
        """Build the networks; weights may come from torch's global generator, which is seeded here and put back."""

    def forward(self, batch: Batch, **kwargs: Any) -> Mapping[str, Any]:
        """Return what `forward_train` does."""
        return self.forward_train(batch, **kwargs)

    def forward_train(self, batch: Batch, **kwargs: Any) -> Mapping[str, Any]:
        """Return what losses need of the columns `[row, ...]`, such as `action_dist_inputs` and `vf_preds`.

        Keywords go on to `_forward_train` of a subclass, here as in the next methods.
        """
        return self._forward_train(batch, **kwargs)

    def forward_exploration(self, batch: Batch, **kwargs: Any) -> Mapping[str, Any]:
        """Return what collecting needs, without gradients."""
        with torch.no_grad():
            return self._forward_exploration(batch, **kwargs)

    def forward_inference(self, batch: Batch, **kwargs: Any) -> Mapping[str, Any]:
        """Return what acting greedily needs, without gradients."""
        with torch.no_grad():
            return self._forward_inference(batch, **kwargs)

    def _forward(self, batch: Batch, **kwargs: Any) -> Mapping[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} has no _forward")

    def _forward_train(self, batch: Batch, **kwargs: Any) -> Mapping[str, Any]:
        return self._forward(batch, **kwargs)

    def _forward_exploration(self, batch: Batch, **kwargs: Any) -> Mapping[str, Any]:
        return self._forward(batch, **kwargs)

    def _forward_inference(self, batch: Batch, **kwargs: Any) -> Mapping[str, Any]:
        return self._forward(batch, **kwargs)

    def get_train_action_dist_cls(self) -> Any:
        """Return the distributions that `action_dist_inputs` pick for a loss: by default those for inference."""
        return self.get_inference_action_dist_cls()

    def get_exploration_action_dist_cls(self) -> Any:
        """Return the distributions of who collects: by default those for inference."""
        return self.get_inference_action_dist_cls()

    def get_inference_action_dist_cls(self) -> Any:
        """Return the distributions of who acts: by default those of the action space."""
        from rlcore_plugin_mlp.spaces import for_space

        if self.action_space is None:
            raise ConfigError(f"{type(self).__name__} has no action_space, which says what its actions are")
        device = next((parameter.device for parameter in self.parameters()), torch.device("cpu"))
        return ActionDistributions(for_space(self.action_space, device))

    def get_non_inference_attributes(self) -> list[str]:
        """Return paths of the attributes that acting does not need, such as `critic`."""
        return []

    def get_state(
        self, components: Paths = None, *, not_components: Paths = None, inference_only: bool = False
    ) -> dict[str, Any]:
        """Return copies of the weights by name.

        Args:
            components: names of those to return; default: all.
            not_components: names of what to leave out.
            inference_only: whether to leave out what acting does not need.
        """
        left_out = tuple(self.get_non_inference_attributes()) if inference_only else ()
        weights = {
            name: partial(as_arrays, tensor)
            for name, tensor in self.state_dict().items()
            if not any(f"{name}.".startswith(f"{path}.") for path in left_out)
        }
        return chosen(weights, components, not_components)

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the constructor takes for another one like this: positional arguments, and those by name."""
        return (), {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "model_config": self.model_config,
            "inference_only": self.inference_only,
        }

    def as_multi_rl_module(self) -> MultiRLModule:
        """Return this module as the only one of several, `default_policy`."""
        from rlcore_plugin_learners.multi import MultiRLModule

        return MultiRLModule({DEFAULT_MODULE_ID: self})

    def unwrapped(self) -> Self:
        """Return the module itself: nothing is wrapped around it."""
        return self

    def is_stateful(self) -> bool:
        """Return False: modules here have no memory."""
        return False

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Set the weights.

        Args:
            state: arrays or tensors by name, all of them; without what only losses need, that stays as it is. What
                only losses need, such as target networks, and is not here is left out.

        Raises:
            ConfigError: it is of another module.
        """
        kept: dict[str, Any] = {}
        there, unused = self.state_dict(), tuple(f"{path}." for path in self.get_non_inference_attributes())
        state = {name: value for name, value in state.items() if name in there or not name.startswith(unused)}
        if self.get_non_inference_attributes() and set(state) == set(self.get_state(inference_only=True)):
            kept = there
        try:
            self.load_state_dict(kept | {name: torch.as_tensor(value) for name, value in state.items()})
        except RuntimeError as error:
            raise ConfigError(f"the state does not fit {type(self).__name__}: {error}") from None


TorchRLModule = RLModule


class ModelRLModule(RLModule):
    """A model of rlcore with actor and critic, such as `mlp`.

    `model_config` is its section of a config: `{"use": "mlp", "hidden": [64, 64]}`, `use` being `mlp` by default. It
    returns `action_dist_inputs` and, with a critic, `vf_preds` `[row]`.
    """

    model: Any

    def setup(self) -> None:
        """Build the model."""
        self.model = model_of(self, "mlp", as_section(self.model_config))
        self._has_critic = "critic" in self.model.parts()

    def _forward(self, batch: Batch, **_: Any) -> Mapping[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self.model.actor(batch[Columns.OBS])}

    def _forward_train(self, batch: Batch, **_: Any) -> Mapping[str, Any]:
        returned = dict(self._forward(batch))
        if self._has_critic:
            returned[Columns.VF_PREDS] = self.compute_values(batch)
        return returned

    def compute_values(self, batch: Batch, embeddings: Any = None) -> Tensor:
        """Return what the critic says of each row, `[row]`."""
        values: Tensor = self.model.critic(batch[Columns.OBS]).squeeze(-1)
        return values

    def get_non_inference_attributes(self) -> list[str]:
        """Return the critic."""
        return ["model.critic"] if self._has_critic else []

    def get_inference_action_dist_cls(self) -> ActionDistributions:
        """Return the distributions of the actor."""
        return ActionDistributions(self.model.actor.distribution)


def model_of(module: RLModule, default: str, section: Mapping[str, Any]) -> Any:
    """Return a model of rlcore for the spaces of a module.

    Args:
        module: the module.
        default: the component that is built where the section has no `use`.
        section: of a config.

    Raises:
        ConfigError: the module has no spaces, or the model no such key.
    """
    if module.observation_space is None or module.action_space is None:
        raise ConfigError("no spaces to build a module for: hand over env=, or spaces in its RLModuleSpec")
    config = dict(section)
    component = published("model", config.pop("use", default))
    schema = component.schema()
    for name in config:
        if name not in schema.model_fields:
            raise ConfigError(f"model_config: {component} has no key {name!r}{did_you_mean(name, schema.model_fields)}")
    context = Context.alone("learner", seed=torch.initial_seed()).for_component("model", "model")
    context.parts["env_spec"] = EnvSpec("learner", module.observation_space, module.action_space, 1)
    return component.build(schema.model_validate(config), context)


@dataclass
class RLModuleSpec(Recorded):
    """Says how a module is built; what is None follows from the config of the learner.

    Attributes:
        module_class: a subclass of `RLModule`; default: `ModelRLModule`.
        observation_space: of one env.
        action_space: of one env.
        model_config: settings of the module, a mapping or a dataclass.
        inference_only: whether the module only acts.
    """

    module_class: type[RLModule] | None = None
    observation_space: gymnasium.Space[Any] | None = None
    action_space: gymnasium.Space[Any] | None = None
    model_config: Any = field(default_factory=dict)
    inference_only: bool = False

    def recorded(self) -> dict[str, Any]:
        """Return the attributes; a dataclass of settings as a dict, which is what modules make of it."""
        config = self.model_config
        is_described = is_dataclass(config) and not isinstance(config, type)
        return vars(self) | {"model_config": asdict(config) if is_described else config}

    @classmethod
    def from_module(cls, module: RLModule) -> RLModuleSpec:
        """Return how to build a module like another."""
        spaces = module.observation_space, module.action_space
        return cls(type(module), *spaces, dict(module.model_config), module.inference_only)

    def as_multi_rl_module_spec(self) -> MultiRLModuleSpec:
        """Return the spec of this module alone, as `default_policy`."""
        from rlcore_plugin_learners.multi import MultiRLModuleSpec

        return MultiRLModuleSpec({DEFAULT_MODULE_ID: copy.copy(self)})

    def build(self, seed: int = 0) -> RLModule:
        """Return the module.

        Args:
            seed: of its weights.
        """
        with seeded(seed):
            kind = self.module_class or ModelRLModule
            spaces = {"observation_space": self.observation_space, "action_space": self.action_space}
            only = {"inference_only": True} if self.inference_only else {}
            return kind(**spaces, model_config=self.model_config, **only)  # type: ignore[arg-type]
