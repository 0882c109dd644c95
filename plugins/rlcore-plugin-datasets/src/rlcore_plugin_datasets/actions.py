"""What `rlcore data` does."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from rlcore.errors import ConfigError
from rlcore_plugin_datasets.converting import converted
from rlcore_plugin_datasets.dataset import Dataset, merged, write_dataset
from rlcore_plugin_datasets.recording import played
from rlcore_plugin_datasets.sources import source_of

_SHOWN: Final = 20


def run(options: argparse.Namespace) -> int:
    """Do what was asked for; return the exit code."""
    return _ACTIONS[options.action](options)


def _record(options: argparse.Namespace) -> int:
    out = Path(options.out)
    if out.exists():  # before anything is played
        raise ConfigError(f"--out {options.out}: it exists already; name another folder, or remove it")
    source = source_of(options)
    with closing(source.env) as env:
        seeds = range(options.seed, options.seed + options.episodes)
        spaces = (env.spec.observation_space, env.spec.action_space)
        episodes = played(env, source.act, source.begin, seeds, options.most_steps, options.infos)
        dataset = write_dataset(out, spaces, episodes, source.more, data_format=options.format)
    return _tell(dataset)


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
        f"  format        {found.data_format}",
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


def _convert(options: argparse.Namespace) -> int:
    return _tell(converted(Path(options.source), Path(options.out), options.env, options.compress, options.format))


def _merge(options: argparse.Namespace) -> int:
    return _tell(merged([Dataset(folder) for folder in options.datasets], Path(options.out), options.format))


_ACTIONS: Final = {"record": _record, "show": _show, "check": _check, "convert": _convert, "merge": _merge}
