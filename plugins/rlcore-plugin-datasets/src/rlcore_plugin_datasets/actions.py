"""What `rlcore data` does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from rlcore.agents import load_agent, set_stage
from rlcore.errors import ConfigError
from rlcore.run_folder import read_config
from rlcore_plugin_datasets.dataset import Dataset, merged, write_dataset
from rlcore_plugin_datasets.recording import Act, env_spec_text, played

if TYPE_CHECKING:
    from rlcore.types import Array, Env

_SHOWN: Final = 20
# keys of [env] that change nothing in what an env does
_OF_THE_SECTION: Final = ("use", "name", "id", "num_envs")


def run(options: argparse.Namespace) -> int:
    """Do what was asked for; return the exit code."""
    return _ACTIONS[options.action](options)


def _record(options: argparse.Namespace) -> int:
    folder, out = Path(options.run), Path(options.out)
    if out.exists():  # before anything is played
        raise ConfigError(f"--out {options.out}: it exists already; name another folder, or remove it")
    stage = set_stage(folder, best=options.best)
    with closing(stage.env(1)) as env:
        act, begin = _random(env, options.seed) if options.random else _policy(folder, options)
        seeds = range(options.seed, options.seed + options.episodes)
        section = dict(read_config(folder).get("env", {}))
        keys = {name: value for name, value in section.items() if name not in _OF_THE_SECTION}
        frames = 0 if options.random else stage.frames
        own = {"env": env.spec.id, "run": folder.resolve().name, "frames": frames, "sampled": options.sample}
        more = {**env_spec_text(env.spec.id, keys), "rlcore": {**own, "random": options.random}}
        spaces = (env.spec.observation_space, env.spec.action_space)
        dataset = write_dataset(out, spaces, played(env, act, begin, seeds, options.most_steps), more)
    return _tell(dataset)


def _policy(folder: Path, options: argparse.Namespace) -> tuple[Act, Callable[[], None]]:
    agent = load_agent(folder, best=options.best, seed=options.seed)
    return lambda observation: agent.act(observation, deterministic=not options.sample), agent.reset


def _random(env: Env, seed: int) -> tuple[Act, Callable[[], None]]:
    space = env.spec.action_space
    space.seed(seed)

    def act(observation: Array) -> Array:
        return np.asarray(space.sample())[np.newaxis]

    return act, lambda: None


def _show(options: argparse.Namespace) -> int:
    return _tell(Dataset(options.dataset))


def _tell(dataset: Dataset) -> int:
    found = dataset.metadata
    returns = [episode.return_ for episode in dataset.episodes()]
    lines = [
        f"{found.dataset_id} in {dataset.folder}",
        f"  env           {found.env_id or 'not said'}",
        f"  observations  {found.observation_space}",
        f"  actions       {found.action_space}",
        f"  episodes      {found.episodes:,} of {found.steps:,} steps",
        f"  returns       {np.mean(returns):,.1f} ({min(returns):,.1f} to {max(returns):,.1f})",
        f"  checksum      {found.file.get('xxh3', 'none; those of rlcore have one')}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _check(options: argparse.Namespace) -> int:
    dataset = Dataset(options.dataset)
    checksum = dataset.verified()
    found = list(islice(dataset.problems(), _SHOWN + 1))
    if found:
        more = ["there are more"] if len(found) > _SHOWN else []
        sys.stderr.write("\n".join([*found[:_SHOWN], *more]) + "\n")
        return 1
    count = dataset.metadata.episodes
    sys.stdout.write(f"{dataset.folder}: {count:,} episodes are whole and inside their spaces ({checksum})\n")
    return 0


def _merge(options: argparse.Namespace) -> int:
    return _tell(merged([Dataset(folder) for folder in options.datasets], Path(options.out)))


_ACTIONS: Final = {"record": _record, "show": _show, "check": _check, "merge": _merge}
