"""Exporting an agent into a file, and looking at once whether the file does what the agent does."""

from __future__ import annotations

import logging
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from rlcore.checkpoints import MANIFEST
from rlcore.envs import EpisodeStarts
from rlcore.errors import FROM_OUTSIDE, ConfigError, StorageError, describe, did_you_mean
from rlcore.files import replacing
from rlcore.run import AgentBuilder, EnvMaker, Saved, of_policy, read_saved
from rlcore_plugin_agents.agent import Agent
from rlcore_plugin_agents.formats import FORMATS
from rlcore_plugin_agents.program import examples

if TYPE_CHECKING:
    from rlcore.types import Array

log = logging.getLogger(__name__)

_CPU: Final = torch.device("cpu")
# observations on which the file is compared with the agent, and how far their actions may be apart
_COMPARED: Final = 64
# how often, where actions follow from earlier observations
_STEPS: Final = 3
# with how many of them it is compared one by one
_ALONE: Final = 4
_RELATIVE, _ABSOLUTE = 1e-4, 1e-5


def export_agent(
    place: Path, format: str, output: Path | None = None, best: bool = False, overwrite: bool = False,
    trust: bool = False, policy: str | None = None,
) -> Path:  # fmt: skip
    """Write the agent of a run into a file, and compare the two.

    Args:
        place: a run folder, or the folder of one of its checkpoints.
        format: `torch-export`, `onnx` or `safetensors`.
        output: the file; default: `policy` with the suffix of the format, in the folder.
        best: the checkpoint with the best evaluation instead of the latest.
        overwrite: replace a file that is there.
        trust: run the code that the config names, or that the file is, though it was not written here.
        policy: of a run with several: the name of one of them; it is in the name of the file.

    Returns:
        The file.

    Raises:
        ConfigError: there is no such run or format, a part cannot be exported, or the file is there already.
        StorageError: there is no checkpoint, or the file cannot be written.
    """
    if format not in FORMATS:
        raise ConfigError(
            f"there is no format {format!r}{did_you_mean(format, FORMATS)}; there are {', '.join(FORMATS)}"
        )
    kind = FORMATS[format]
    if output is None and (place / MANIFEST).exists():
        raise ConfigError(
            f"{str(place)!r} is a checkpoint, which nothing is written into: say where with --output FILE"
        )
    file = output or place / f"policy{'' if policy is None else f'-{policy}'}{kind.suffix}"
    if file.suffix != kind.suffix:
        raise ConfigError(f"--output {str(file)!r}: a file of the format {format} has the suffix {kind.suffix}")
    if file.exists() and not overwrite:
        raise ConfigError(f"{str(file)!r} exists already; choose another --output, or say --overwrite")
    saved = of_policy(read_saved(place, best, trust), policy)
    parts = AgentBuilder(saved, _CPU).build()
    agent = Agent(parts.spec, parts.transforms, parts.model.policy, _CPU, 0, saved.frames)
    observations = _observations(saved, agent, _COMPARED * (_STEPS if agent.remembers else 1))
    try:
        with replacing(file) as written:
            beside = written.with_name(written.name + kind.suffix)  # some writers and readers go by the suffix
            try:
                kind.write(AgentBuilder(saved, _CPU).build(), beside)
                _compare(agent, kind.load(beside, _CPU, 0, False), observations, file)
                beside.rename(written)
            finally:
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{str(file)!r} cannot be written: {error}") from error
    return file


def _observations(saved: Saved, agent: Agent, count: int) -> Array:
    """Return raw observations that the agent meets as it plays, `[count, *shape]`.

    Where its env cannot be played here they are made up of its space, which is said.
    """
    try:
        return _played(saved, agent, count)
    except FROM_OUTSIDE:
        raise
    except BaseException as error:  # an exit too, of the env
        log.warning(
            "env %r cannot be played here, so the file is compared with the agent on observations that are made up, "
            "which may be none that the env gives: %s",
            agent.env_id,
            describe(error),
        )
        return np.asarray(examples(agent.observation_space, count))


def _played(saved: Saved, agent: Agent, count: int) -> Array:
    """Play as in training, and return the observations.

    Raises:
        ConfigError: the env has other spaces than the agent was trained with, as that of several policies has.
    """
    builder = AgentBuilder(saved, _CPU, ("env",))
    section = builder.section("env", saved.config["env"])
    with closing(EnvMaker(section.provided, section.config, "env", builder.context)("export", num_envs=1)) as env:
        if (env.spec.observation_space, env.spec.action_space) != (agent.observation_space, agent.action_space):
            raise ConfigError(f"it has the spaces {env.spec.observation_space} and {env.spec.action_space}")
        starts = EpisodeStarts(env.spec)
        starts.reset()
        rows, reward = [np.array(env.reset(seed=0))], None
        while len(rows) * env.spec.num_envs < count:
            step = env.step(agent.act(rows[-1], deterministic=False, reward=reward))
            rows.append(np.array(step.observation))
            reward = step.reward if agent.reads_rewards else None
            agent.reset(starts.first(step))
    agent.reset()
    return np.concatenate(rows)[:count]


def _compare(agent: Agent, exported: Agent, observations: Array, file: Path) -> None:
    """Act on the same observations with both, with many at once and with one alone.

    Where they remember, they act for some steps, with beginnings among them.

    Raises:
        ConfigError: the actions differ.
    """
    for batch in np.split(observations, len(observations) // _COMPARED):
        _act_alike(agent, exported, batch, file)
        for each in (agent, exported):
            each.reset(np.arange(_COMPARED) % 2 == 0)
    for each in (agent, exported):
        each.reset()
    for observation in observations[:_ALONE]:
        _act_alike(agent, exported, observation[None], file)


def _act_alike(agent: Agent, exported: Agent, observations: Array, file: Path) -> None:
    rewards = np.linspace(-1, 1, len(observations)) if agent.reads_rewards else None
    expected, actual = (each.act(observations, reward=rewards) for each in (agent, exported))
    if expected.dtype.kind == "f":
        same = np.isclose(actual, expected, _RELATIVE, _ABSOLUTE)
    else:
        same = actual == expected  # two values may be so near that rounding decides
    if actual.shape != expected.shape or same.mean() < 1 - 2 / _COMPARED:
        raise ConfigError(
            f"{str(file)!r} is not written: the exported policy acts otherwise than the agent, such as "
            f"{actual.flat[0]} in the place of {expected.flat[0]}; the format safetensors keeps the agent as it is"
        )
