"""Building an agent from a checkpoint: the model and the transforms, and nothing of the training."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, Final

import torch

from rlcore.agents.agent import Agent
from rlcore.agents.place import Saved, read_saved
from rlcore.agents.spec_env import NotSteppableError, SpecEnv
from rlcore.assembly.assembly import Assembly
from rlcore.config.core import RunConfig
from rlcore.config.sections import find_component
from rlcore.envs.spec_records import recorded_spec
from rlcore.envs.transformed import TransformedEnv, transformed_spec
from rlcore.errors import ConfigError, StorageError
from rlcore.plugins.host import PluginHost, loose_name
from rlcore.restore.components import restore
from rlcore.run.process_state import choose_device
from rlcore.types import Context, EnvSpec, Progress, RunInfo, Stateful, Transform
from rlcore.types.optional import offers

_OURS: Final = ("use", "name")


def load_agent(
    place: str | PathLike[str],
    best: bool = False,
    device: str = "cpu",
    *,
    seed: int = 0,
    trust: bool = False,
) -> Agent:
    """Return the trained policy of a run, which acts on raw observations; nothing of the training is built.

    Args:
        place: a run folder, or the folder of one of its checkpoints.
        best: the checkpoint with the best evaluation instead of the latest.
        device: where the model computes: `cpu`, `cuda`, `cuda:N`, or `auto`.
        seed: of actions that are sampled (`deterministic=False`).
        trust: import what the config names though the folder belongs to another user.

    Raises:
        ConfigError: there is no such run, or it belongs to another user; or the agent cannot be built.
        PluginError: the plugin of the model or of a transform is not installed; says how to install it.
        StorageError: there is no checkpoint, or none that can be read.

    Example:
        agent = rlcore.load_agent("runs/ppo-cartpole", best=True)
        action = agent.act(observation)
    """
    on_device = _device(device)
    saved = read_saved(Path(place), best, trust)
    builder = _Builder(saved, on_device)
    model, transforms = builder.build()
    return Agent(builder.spec, transforms, model.policy, on_device, seed, saved.entry.frames)


class _Builder:
    """Builds what an agent needs of a checkpoint.

    Attributes:
        spec: of the env, before any transform.
    """

    def __init__(self, saved: Saved, device: torch.device) -> None:
        self._saved = saved
        self._host = PluginHost()
        self._files = [Path(file) for file in saved.config.get("plugins", {}).get("files", [])]
        run = RunConfig.model_validate(saved.config["run"])
        progress = Progress(run.total_frames)
        progress.load_state_dict(saved.states.get("progress", {"frames": saved.entry.frames}))
        info = RunInfo(run.name, run.seed, run.total_frames, None, saved.config)
        self._assembly = Assembly(Context(run=info, device=device, progress=progress))
        self.spec = self._env_spec()

    def build(self) -> tuple[Any, list[Transform]]:
        """Return the model and the transforms, as they were saved."""
        parts, assembly = self._assembly.context.built, self._assembly
        env = SpecEnv(self.spec)
        parts.update(env=env, env_spec=self.spec, transforms=[])
        for table in self._saved.config.get("transform", []):
            self._transform(env, table)
        provided, config = self._component("model", self._saved.config["model"])
        model = assembly.part(provided, config, self._saved.config["model"].get("name", "model"), single=True)
        self._restore()
        return model, parts["transforms"]

    def _transform(self, env: SpecEnv, table: Mapping[str, Any]) -> None:
        """Build a transform; what it learnt from frames before training is in its state."""
        parts = self._assembly.context.built
        provided, config = self._component("transform", table)
        transform: Transform = self._assembly.part(provided, config, table["name"])
        try:
            transform.fit(TransformedEnv(env, parts["transforms"]))
        except NotSteppableError:
            if not offers(transform, Stateful):
                raise ConfigError(
                    f"{provided} takes frames of the env before training and does not save what it learns from them "
                    "(it has no state_dict), so there is no agent with it"
                ) from None
        parts["env_spec"] = transformed_spec(parts["env_spec"], transform)
        parts["transforms"].append(transform)

    def _restore(self) -> None:
        components, states = self._assembly.stateful, self._saved.states
        restore(components, {name: state for name, state in states.items() if name in components}, {})

    def _component(self, kind: str, table: Mapping[str, Any]) -> Any:
        """Return the component of a section, and its keys; a loose file is imported only where it has the component."""
        plugin = table["use"].rpartition(":")[0]
        for file in self._files:
            if loose_name(file) == plugin and plugin not in self._host.loaded:
                self._host.load_file(file)
        keys = {name: value for name, value in table.items() if name not in _OURS}
        return find_component(self._host, kind, table["use"], keys)

    def _env_spec(self) -> EnvSpec:
        """Return the recorded spec of the env; a checkpoint without one is an older one, whose env is made for it."""
        record = self._saved.entry.manifest.get("env")
        if record:
            try:
                return recorded_spec(record)
            except Exception as error:  # a record that was made to harm raises anything
                raise StorageError(
                    f"checkpoint {self._saved.entry.path}: its entry 'env' cannot be read: {error}"
                ) from None
        provided, config = self._component("env", self._saved.config["env"])
        context = self._assembly.context.for_component("env", "agent")
        with closing(provided.build(config.model_copy(update={"num_envs": 1}), context)) as env:
            return env.spec  # type: ignore[no-any-return]


def _device(name: str) -> torch.device:
    try:
        return choose_device(str(name))
    except RuntimeError as error:
        raise ConfigError(f"device = {str(name)!r}: {error}") from None
