"""Where recorded episodes come from: the policy of a run, that of a config before any training, or random actions."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rlcore_plugin_agents.agent import Agent
from rlcore_plugin_agents.loading import load_agent
from rlcore_plugin_agents.stage import set_stage

import rlcore
from rlcore.envs import keeping_to_masks
from rlcore.errors import ConfigError
from rlcore.run import EnvMaker
from rlcore.run_folder import read_config
from rlcore.types import Context
from rlcore_plugin_datasets.recording import Act, env_spec_text

if TYPE_CHECKING:
    from rlcore.types import Array, Env


@dataclass(frozen=True)
class Source:
    """Who plays, and in what.

    Attributes:
        env: one env.
        act: observations `[1, *shape]` to actions `[1, *shape]` in the env's units.
        begin: called before each episode.
        more: what the metadata say of it.
    """

    env: Env
    act: Act
    begin: Callable[[], None]
    more: dict[str, Any]


def source_of(options: argparse.Namespace) -> Source:
    """Return who plays, by the arguments of `rlcore data record`.

    Raises:
        RlcoreError: the run or the config cannot be used.
    """
    path = Path(options.run)
    source = _of_run(path, options) if path.is_dir() else _of_config(path, options)
    if options.random:
        act = _uniform(source.env, options.seed)
        own = {**source.more["rlcore"], "frames": 0, "random": True}
        return replace(source, act=act, begin=lambda: None, more={**source.more, "rlcore": own})
    return source


def _of_run(folder: Path, options: argparse.Namespace) -> Source:
    stage = set_stage(folder, best=options.best, changes=options.set, trust=options.trust)
    env = stage.env(1)
    section = dict(read_config(folder).get("env", {}))
    more = _metadata(env, section, folder.resolve().name, stage.frames, options)
    if options.random:
        return Source(env, lambda observation: observation, lambda: None, more)
    agent = load_agent(folder, best=options.best, seed=options.seed, trust=options.trust)
    return _acting(env, agent, more, options)


def _of_config(path: Path, options: argparse.Namespace) -> Source:
    if options.best:
        raise ConfigError(f"--best chooses among the checkpoints of a run, and {str(path)!r} is no run folder")
    config = rlcore.load_config(path, options.set, trust=options.trust)
    section = config.one("env")
    if section is None:
        raise ConfigError(f"{path}: it has no [env] to record in")
    context = Context.alone(config.run.name, options.seed)
    parts = None
    if not options.random:
        with closing(rlcore.build(config, write=False)) as run:  # its envs are closed before the next are made
            parts = run.trainer.parts
    env = EnvMaker(section.provided, section.config, section.name, context)("recording", num_envs=1)
    keys = section.config.model_dump(mode="json", exclude_unset=True)
    more = _metadata(env, keys, config.run.name, 0, options)
    if parts is None:
        return Source(env, lambda observation: observation, lambda: None, more)
    device = next(parts.model.parameters()).device
    agent = Agent(env.spec, parts.transforms, parts.model.policy, device, options.seed)
    return _acting(env, agent, more, options)


def _acting(env: Env, agent: Agent, more: dict[str, Any], options: argparse.Namespace) -> Source:
    return Source(env, lambda seen: agent.act(seen, deterministic=not options.sample), agent.reset, more)


def _uniform(env: Env, seed: int) -> Act:
    space, allowed = env.spec.action_space, keeping_to_masks(env.spec)
    space.seed(seed)

    def act(observation: Array) -> Array:
        return allowed(np.asarray(space.sample())[np.newaxis], observation)

    return act


def _metadata(env: Env, section: dict[str, Any], name: str, frames: int, options: argparse.Namespace) -> dict[str, Any]:
    own = {"env": env.spec.id, "run": name, "frames": frames, "sampled": options.sample, "random": False}
    return {**env_spec_text(env.spec.id, section), "rlcore": own}
