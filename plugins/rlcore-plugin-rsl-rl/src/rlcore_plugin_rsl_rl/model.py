"""The model `rsl-rl`: an actor and a critic, each with the groups of observations that it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
import torch
from pydantic import BaseModel, Field, PositiveInt
from rlcore_plugin_mlp.model import ActorPolicy
from torch import Tensor, nn

from rlcore.envs import Packed
from rlcore.errors import ConfigError
from rlcore_plugin_rsl_rl.networks import Activation, Actor, Network, Normalizer, Seen

if TYPE_CHECKING:
    from rlcore import Context
    from rlcore.types import Group

# batches after which a normaliser has been shown some, also by a collector that is ahead
_LATEST = 4


class RslRlModel(nn.Module):
    """An MLP for the actor and one for the critic, which share nothing, as in rsl_rl.

    Raises:
        ConfigError: there is no such group of observations, or actions are no box without bounds.
    """

    class Config(BaseModel, extra="forbid", allow_inf_nan=False):
        """What each network sees, and its shape."""

        actor_observations: list[str] = Field(
            default_factory=list,
            description="groups that the actor sees; default: 'actor' if there is one, or 'policy'",
        )
        critic_observations: list[str] = Field(
            default_factory=list, description="of the critic; default: 'critic' if there is one, or 'policy'"
        )
        actor_hidden: list[PositiveInt] = Field([256, 256, 256], min_length=1, description="hidden sizes of the actor")
        critic_hidden: list[PositiveInt] = Field([256, 256, 256], min_length=1, description="of the critic")
        actor_activation: Activation = Field("elu", description="between the layers of the actor, by rsl_rl's names")
        critic_activation: Activation = Field("elu", description="of the critic")
        actor_normalization: bool = Field(False, description="normalise what the actor sees, over the whole run")
        critic_normalization: bool = Field(False, description="what the critic sees")
        init_std: float = Field(1.0, gt=0, description="standard deviation of actions in the beginning")
        std_type: Literal["scalar", "log"] = Field(
            "scalar", description="parameters are deviations or their logarithms"
        )
        std_range: tuple[float, float] = Field((1e-6, 1e6), description="limits of the standard deviations")
        learn_std: bool = Field(True, description="train the standard deviations")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        space = spec.observation_space
        actions = _unbounded(spec.action_space)

        def common(part: str) -> dict[str, Any]:
            chosen = getattr(config, f"{part}_observations") or _default(space, part)
            return {
                "seen": Seen(space, chosen, f"{part}_observations"),
                "activation": getattr(config, f"{part}_activation"),
                "normalizes": getattr(config, f"{part}_normalization"),
                "generator": torch.Generator().manual_seed(context.seed(part)),
            }

        std = {name: getattr(config, name) for name in ("init_std", "std_type", "std_range", "learn_std")}
        self.actor = Actor(actions, hidden=config.actor_hidden, **std, **common("actor"))
        self.critic = Network(sizes=[*config.critic_hidden, 1], **common("critic"))
        self.policy = NormalizedPolicy(self.actor)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return ("actor", "critic")

    def normalizes(self) -> bool:
        """Return whether a network normalises what it sees."""
        return any(isinstance(module, Normalizer) for module in self.modules())

    def update_normalization(self, observation: Tensor, group: Group) -> None:
        """Show the normalisers observations `[row, ...]`."""
        self.actor.update_normalization(observation, group)
        self.critic.update_normalization(observation, group)


class NormalizedPolicy(ActorPolicy):
    """The policy of an actor that may have a normaliser, which somebody has to show observations."""

    def __init__(self, actor: Actor) -> None:
        own: Any = actor  # it has what a policy asks of an actor
        super().__init__(own)
        normalizer = actor.obs_normalizer
        self._unshown = normalizer if isinstance(normalizer, Normalizer) else None
        self._batches = 0

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch `[time, env, ...]`.

        Raises:
            ConfigError: batches were collected, and the normaliser was shown none.
        """
        self._batches += 1
        if self._unshown is not None and self._batches == _LATEST:
            if int(self._unshown.count) == 0:  # type: ignore[arg-type]
                raise ConfigError(
                    "[model] actor_normalization: nothing shows the normaliser what it is to normalise; take [loss] "
                    "use = 'rsl-rl:adaptive-ppo', or set it to false"
                )
            self._unshown = None
        return super().draw(steps, num_envs, generator)


def _default(space: gymnasium.Space[Any], part: str) -> list[str]:
    """Return the groups of a part, as rsl_rl finds them.

    Raises:
        ConfigError: there is no group of these names.
    """
    if not isinstance(space, Packed):
        return []
    for name in (part, "policy"):
        if name in space.leaves:
            return [name]
    raise ConfigError(
        f"[model] {part}_observations: name the groups that the {part} sees; there are {', '.join(space.leaves)}"
    )


def _unbounded(space: gymnasium.Space[Any]) -> int:
    if (
        not isinstance(space, gymnasium.spaces.Box)
        or len(space.shape) != 1
        or np.isfinite([space.low, space.high]).any()
    ):
        raise ConfigError(
            f"[model] rsl-rl gives actions without bounds, and this env takes {space}; put the transform action-clip "
            "before it, or take another model"
        )
    return int(space.shape[0])
