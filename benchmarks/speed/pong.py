"""What the Pong benchmarks share: sizes, flags, and one game as the peers step it. A frame is a step of four."""

from __future__ import annotations

import argparse

import gymnasium
from common import Workload, linear, peer_parser

# the settings of CleanRL's ppo_atari.py
PONG = Workload(
    env_id="PongNoFrameskip-v4",
    envs=8,
    steps=128,
    minibatch=256,
    epochs=4,
    hidden=(),
    learning_rate=2.5e-4,
    schedule=linear,
    max_grad_norm=0.5,
    entropy_coef=0.01,
    value_coef=0.5,
    clip_value=True,
    default_frames=6_144,
    clip=0.1,
)
SKIP = 4


def pong_parser(description: str | None) -> argparse.ArgumentParser:
    """Make the parser with the flags of all Pong scripts; they run with two threads."""
    parser = peer_parser(description, ["pong"])
    parser.set_defaults(threads=2)
    return parser


def make_game() -> gymnasium.Env:
    """Make one game whose observations are four grey pictures of 84 x 84, with Gymnasium's own wrappers."""
    import ale_py
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    gymnasium.register_envs(ale_py)
    return FrameStackObservation(AtariPreprocessing(gymnasium.make(PONG.env_id), frame_skip=SKIP), 4)
