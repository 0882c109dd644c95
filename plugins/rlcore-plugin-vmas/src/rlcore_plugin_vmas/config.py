"""The keys of the section."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Config(BaseModel, extra="forbid"):
    """Which scenario, and how many agents act in it."""

    scenario: str = Field(description="of VMAS, such as balance, or 'module:Class' of your own")
    num_envs: int = Field(1, ge=1, description="agents that act together: those of one world, or several times that")
    max_steps: int = Field(100, ge=1, description="steps after which an episode is truncated")
    continuous_actions: bool = Field(True, description="false: an action is a number, of a few forces")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="arguments of the scenario, such as n_agents")
