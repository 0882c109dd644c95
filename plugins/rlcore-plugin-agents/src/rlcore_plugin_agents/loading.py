"""Loading an agent: from a run, from a checkpoint, or from a file that was exported."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import torch

from rlcore.errors import ConfigError
from rlcore.run import AgentBuilder, choose_device, of_policy, read_saved
from rlcore_plugin_agents.agent import Agent
from rlcore_plugin_agents.formats import FORMATS, format_of


def load_agent(
    place: str | PathLike[str],
    best: bool = False,
    device: str = "cpu",
    *,
    policy: str | None = None,
    seed: int = 0,
    trust: bool = False,
) -> Agent:
    """Return the trained policy of a run, which acts on raw observations; nothing of the training is built.

    Args:
        place: a run folder, the folder of one of its checkpoints, or a file that `rlcore export` wrote.
        best: of a run: the checkpoint with the best evaluation instead of the latest.
        device: where the model computes: `cpu`, `cuda`, `cuda:N`, or `auto`.
        policy: of a run with several: the name of one of them.
        seed: of actions that are sampled (`deterministic=False`).
        trust: run the code that the config names, or that the file is, though it was not written here.

    Raises:
        ConfigError: there is no such run, its code is not trusted, or the agent cannot be built.
        PluginError: the plugin of the model or of a transform is not installed; says how to install it.
        StorageError: there is no checkpoint, or none that can be read.

    Example:
        agent = rlcore.load_agent("runs/ppo-cartpole", best=True)
        action = agent.act(observation)
    """
    path, on_device = Path(place), device_of(device)
    if path.is_file():
        if best:
            raise ConfigError(f"best chooses among the checkpoints of a run, and {str(path)!r} is one exported file")
        if policy is not None:
            raise ConfigError(f"policy = {policy!r}: {str(path)!r} is one exported policy; leave the name out")
        return FORMATS[format_of(path)].load(path, on_device, seed, trust)
    parts = AgentBuilder(of_policy(read_saved(path, best, trust), policy), on_device).build()
    model = parts.model
    return Agent(parts.spec, parts.transforms, model.policy, on_device, seed, parts.saved.frames, network=model)


def device_of(name: str) -> torch.device:
    """Return the device of a name.

    Raises:
        ConfigError: there is none of that name here.
    """
    try:
        return choose_device(str(name))
    except RuntimeError as error:
        raise ConfigError(f"device = {str(name)!r}: {error}") from None
