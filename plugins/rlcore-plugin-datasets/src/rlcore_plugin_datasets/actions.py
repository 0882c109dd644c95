"""What `rlcore data` does."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from rlcore.cli import Answer
from rlcore.errors import ConfigError
from rlcore_plugin_datasets.answers import CheckedDataset, ShownDataset
from rlcore_plugin_datasets.converting import converted
from rlcore_plugin_datasets.dataset import Dataset, merged, write_dataset
from rlcore_plugin_datasets.recording import played
from rlcore_plugin_datasets.sources import source_of

_SHOWN: Final = 20


def run(options: argparse.Namespace) -> Answer:
    """Do what was asked for."""
    return _ACTIONS[options.action](options)


def _record(options: argparse.Namespace) -> Answer:
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


def _show(options: argparse.Namespace) -> Answer:
    return _tell(Dataset(options.dataset))


def _tell(dataset: Dataset) -> Answer:
    said = dataset.metadata
    returns = [episode.return_ for episode in dataset.episodes()]
    shown = ShownDataset(
        folder=str(dataset.folder),
        id=said.dataset_id,
        env=said.env_id,
        observations=str(said.observation_space),
        actions=str(said.action_space),
        episodes=said.episodes,
        steps=said.steps,
        mean_return=float(np.mean(returns)),
        min_return=min(returns),
        max_return=max(returns),
        format=said.data_format,
        checksum=said.file.get("xxh3"),
    )
    lines = [
        f"{shown.id} in {shown.folder}",
        f"  env           {shown.env or 'not said'}",
        f"  observations  {shown.observations}",
        f"  actions       {shown.actions}",
        f"  episodes      {shown.episodes:,} of {shown.steps:,} steps",
        f"  returns       {shown.mean_return:,.1f} ({shown.min_return:,.1f} to {shown.max_return:,.1f})",
        f"  format        {shown.format}",
        f"  checksum      {shown.checksum or 'none; those of rlcore have one'}",
    ]
    return Answer(shown, "\n".join(lines) + "\n")


def _check(options: argparse.Namespace) -> Answer:
    dataset = Dataset(options.dataset)
    checksum = dataset.verified()
    problems = list(islice(dataset.problems(), _SHOWN + 1))
    count, more = dataset.metadata.episodes, len(problems) > _SHOWN
    checked = CheckedDataset(str(dataset.folder), count, checksum, problems[:_SHOWN], more)
    if problems:
        sys.stderr.write("\n".join([*checked.problems, *(["there are more"] if more else [])]) + "\n")
        return Answer(checked, code=1)
    return Answer(checked, f"{dataset.folder}: {count:,} episodes are whole and inside their spaces ({checksum})\n")


def _convert(options: argparse.Namespace) -> Answer:
    return _tell(converted(Path(options.source), Path(options.out), options.env, options.compress, options.format))


def _merge(options: argparse.Namespace) -> Answer:
    return _tell(merged([Dataset(folder) for folder in options.datasets], Path(options.out), options.format))


_ACTIONS: Final = {"record": _record, "show": _show, "check": _check, "convert": _convert, "merge": _merge}
