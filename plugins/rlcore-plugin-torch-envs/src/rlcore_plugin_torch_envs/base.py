"""What the envs of this plugin have in common: their numbers are tensors `[env]` of one precision."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import gymnasium
import numpy as np
import torch
from pydantic import BaseModel, Field
from rlcore_plugin_device import FunctionalEnv
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore_plugin_torch_envs.rendering import Renderer

if TYPE_CHECKING:
    from rlcore import Context
    from rlcore.types import Array

Numbers: TypeAlias = Mapping[str, Tensor]


class Config(BaseModel, extra="forbid"):
    """Which env, and how many."""

    id: str = Field(description="of Gymnasium or MinAtar, such as CartPole-v1")
    num_envs: int = Field(1, ge=1, description="envs that step together")
    max_episode_steps: int | None = Field(None, ge=1, description="truncate episodes here instead of the env's limit")
    precision: Literal["float32", "float64"] = Field(
        "float32", description="of the state of classic control; Gymnasium's is float64, which many devices are slow at"
    )
    observed: list[int] = Field(
        [],
        description="numbers of classic control that are observed, as [0, 2] of CartPole: no velocities; [] for all",
    )
    render_mode: Literal["rgb_array"] | None = Field(None, description="rgb_array: can be rendered, for videos")


class ClassicControl(FunctionalEnv):
    """An env of Gymnasium's classic control.

    Attributes:
        dtype: of the state.

    Raises:
        ConfigError: there is no such number in an observation.
    """

    def __init__(self, config: Config, context: Context, max_episode_steps: int | None) -> None:
        self.dtype = torch.float64 if config.precision == "float64" else torch.float32
        self.max_episode_steps = max_episode_steps
        self._name = config.id
        self._renderer: Renderer | None = None
        self._observed: Tensor | None = None
        if config.observed:
            self.observation_space = _part_of(self.observation_space, config.observed)
            self._observed = torch.tensor(config.observed, device=context.device)
        super().__init__(config, context)

    @abstractmethod
    def whole_observation(self, state: Numbers) -> Tensor:
        """Return what Gymnasium's env observes, `[env, number]`."""

    def observation(self, state: Numbers) -> Tensor:
        """Return what is observed, `[env, number]`."""
        whole = self.whole_observation(state)
        return whole if self._observed is None else whole.index_select(-1, self._observed)

    def pictures(self, state: Numbers) -> Array:
        """Return what Gymnasium shows of the states."""
        if self._renderer is None:
            self._renderer = Renderer(self._name)
        rows = torch.stack([*state.values()], -1).cpu().double().numpy()
        return np.stack([self._renderer.picture(row) for row in rows])

    def close(self) -> None:
        """Close the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None


def _part_of(space: gymnasium.Space[Any], observed: list[int]) -> gymnasium.spaces.Box:
    """Return the space of some numbers of an observation."""
    assert isinstance(space, gymnasium.spaces.Box)
    count = space.shape[0]
    if not {*observed} <= {*range(count)} or len({*observed}) < len(observed):
        raise ConfigError(
            f"[env] observed = {observed}: are some of the numbers 0 to {count - 1} of an observation, each once"
        )
    return gymnasium.spaces.Box(space.low[observed], space.high[observed], dtype=np.float32)
