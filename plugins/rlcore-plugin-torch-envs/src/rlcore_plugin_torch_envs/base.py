"""What the envs of this plugin have in common: their numbers are tensors `[env]` of one precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from pydantic import BaseModel, Field
from rlcore_plugin_device import FunctionalEnv
from torch import Tensor

if TYPE_CHECKING:
    from rlcore import Context

Numbers: TypeAlias = Mapping[str, Tensor]


class Config(BaseModel, extra="forbid"):
    """Which env, and how many."""

    id: str = Field(description="of Gymnasium or MinAtar, such as CartPole-v1")
    num_envs: int = Field(1, ge=1, description="envs that step together")
    max_episode_steps: int | None = Field(None, ge=1, description="truncate episodes here instead of the env's limit")
    precision: Literal["float32", "float64"] = Field(
        "float32", description="of the state of classic control; Gymnasium's is float64, which many devices are slow at"
    )


class ClassicControl(FunctionalEnv):
    """An env of Gymnasium's classic control.

    Attributes:
        dtype: of the state.
    """

    def __init__(self, config: Config, context: Context, max_episode_steps: int | None) -> None:
        self.dtype = torch.float64 if config.precision == "float64" else torch.float32
        self.max_episode_steps = max_episode_steps
        super().__init__(config, context)
