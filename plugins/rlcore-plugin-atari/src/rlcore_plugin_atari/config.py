"""The keys of the section `[env]` when it uses `atari`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class Config(BaseModel, extra="forbid"):
    """Which game, how many of them, and what is seen of it."""

    game: str = Field(description="name of the game, such as pong or space_invaders; ALE/Pong-v5 and Pong will do")
    num_envs: int = Field(1, ge=1, description="games that step together")
    vectorization: Literal["serial", "native"] = Field(
        "serial", description="serial: one by one, exact at a resume; native: ALE's vector env, on several threads"
    )
    threads: int = Field(0, ge=0, description="native: how many; 0 for as many as there are cores")
    frame_skip: int = Field(4, ge=1, description="times each action is repeated; every repetition counts as a frame")
    stack: int = Field(4, ge=1, description="frames in an observation, the oldest first")
    size: int = Field(84, ge=16, description="height and width of a frame")
    grayscale: bool = Field(True, description="grey frames; false: of three colours, which come last")
    repeat_action_probability: float = Field(0.0, ge=0, lt=1, description="of sticky actions; 0.25 is recommended")
    full_action_space: bool = Field(False, description="all 18 actions, instead of those that the game knows")
    noop_max: int = Field(30, ge=0, description="most steps without an action that a game begins with")
    fire_reset: bool = Field(True, description="press the button once where a game or a life begins with it")
    episodic_life: bool = Field(
        False, description="a lost life ends an episode of training; evaluations play whole games"
    )
    max_frames: int = Field(108_000, ge=1, description="frames after which a game is cut off")
    render_mode: Literal["rgb_array"] | None = Field(None, description="rgb_array: can be rendered, for videos")
