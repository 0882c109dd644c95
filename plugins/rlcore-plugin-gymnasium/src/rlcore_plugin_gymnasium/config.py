"""The keys of the section `[env]` when it uses `gymnasium`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from rlcore.types import FREE_AT_RESUME


class Config(BaseModel, extra="forbid"):
    """Which environment, and how many."""

    id: str = Field(description="Gymnasium id, such as CartPole-v1; module:Id-v0 imports the module first")
    num_envs: int = Field(1, ge=1, description="envs that step together")
    frame_skip: int = Field(1, ge=1, description="times each action is repeated; every repetition counts as a frame")
    vectorization: Literal["auto", "serial", "native"] = Field(
        "auto", description="serial: one by one; native: the environment's own vector form; auto: whichever is faster"
    )
    max_episode_steps: int | None = Field(None, ge=1, description="truncate episodes here instead of the id's limit")
    render_mode: Literal["rgb_array", "human"] | None = Field(
        None, description="rgb_array: can be rendered, for videos; human: in a window"
    )
    kwargs: dict[str, Any] = Field(
        default_factory=dict,
        description="arguments of the environment's constructor; 'module:name' where that asks for a function",
    )
    wrappers: list[str | dict[str, Any]] = Field(
        default_factory=list,
        description="around each env, the first one inside: names of Gymnasium's wrappers or 'module:Class', or tables "
        "of `use` and arguments",
    )
    try_out: bool = Field(
        True,
        description="try out on other instances whether a resume can be exact; false: for an env that may exist once",
        json_schema_extra=FREE_AT_RESUME,
    )
    mask_key: str | None = Field(
        None, description="info that says which actions are allowed, such as action_mask; default: all are"
    )

    @field_validator("wrappers")
    @classmethod
    def _are_named(cls, wrappers: list[str | dict[str, Any]]) -> list[str | dict[str, Any]]:
        for number, wrapper in enumerate(wrappers):
            if isinstance(wrapper, dict) and not isinstance(wrapper.get("use"), str):
                raise ValueError(
                    f"entry {number}, {wrapper}, names no wrapper: {{ use = 'TimeLimit', max_episode_steps = 100 }}"
                )
        return wrappers
