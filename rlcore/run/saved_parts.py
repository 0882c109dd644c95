"""Building model and transforms from what was saved of them, and nothing of the training."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import torch

from rlcore.config.core import PluginsConfig
from rlcore.config.own_modules import places_in
from rlcore.config.policies import AGENTS
from rlcore.config.raw import RawConfig
from rlcore.config.sections import find_component
from rlcore.config.trust import OwnCode
from rlcore.envs.spec_env import NotSteppableError, SpecEnv
from rlcore.envs.spec_records import recorded_spec
from rlcore.envs.transformed import TransformedEnv
from rlcore.errors import ConfigError, StorageError
from rlcore.plugins.host import PluginHost, loose_name
from rlcore.plugins.registry import Provided
from rlcore.policies.model import JointModel
from rlcore.policies.shares import assigned
from rlcore.run.assembly import Assembly
from rlcore.run.saved import Saved, agents_of, models_of
from rlcore.state.restoring import restore
from rlcore.types import Context, EnvSpec, Model, Progress, RunInfo, Stateful, Transform
from rlcore.types.optional import offers

_OURS: Final = ("use", "name", "leaf", AGENTS)


@dataclass(frozen=True)
class AgentParts:
    """What acts.

    Attributes:
        spec: of the env, before any transform.
        transforms: in the order in which observations pass.
        model: has the policy.
        device: of the model.
        saved: what they were built from.
        labels: component and owner of the model and of each transform, for messages.
    """

    spec: EnvSpec
    transforms: list[Transform]
    model: Model
    device: torch.device
    saved: Saved
    labels: Mapping[str, str]


def _host(raw: RawConfig) -> PluginHost:
    """Import what the config names besides components: it may register envs."""
    plugins = PluginsConfig.model_validate(raw.values.get("plugins", {}))
    host, code = PluginHost(disable=plugins.disable), OwnCode(raw)
    for file in code.files:
        code.load(host, file)
    for name in plugins.enable:
        host.load(name)
    return host


class PartsBuilder:
    """Builds the parts of one agent.

    Args:
        saved: what was saved of them.
        device: of the model.
        sections: of the config that are built from; where `env` is among them, what registers envs is imported.

    Attributes:
        context: with which they are built; afterwards it has them.
    """

    def __init__(self, saved: Saved, device: torch.device, sections: tuple[str, ...] = ("transform", "model")) -> None:
        self._saved = saved
        self._sections = sections
        self._host = _host(saved.raw) if "env" in sections else PluginHost()
        self._code = OwnCode(saved.raw)
        self._find_modules()
        self._labels: dict[str, str] = {}
        run = saved.run
        progress = Progress(run.frames, total_updates=run.total_updates)
        progress.load_state_dict(saved.states.get("progress", {"frames": saved.frames}))
        info = RunInfo(run.name, run.seed, run.frames, None, saved.config, run.total_updates)
        self.context = Context(run=info, device=device, progress=progress)
        self._assembly = Assembly(self.context)

    def build(self) -> AgentParts:
        """Build and restore everything.

        Raises:
            RlcoreError: a plugin is missing, or a part cannot be built or does not fit its state.
        """
        assembly, saved = self._assembly, self._saved
        parts, spec = assembly.context.built, self._env_spec()
        env = SpecEnv(spec)
        parts.update(env=env, env_spec=spec, transforms=[])
        for table in saved.config.get("transform", []):
            self._transform(env, table)
        models = {name: self._model(name, table) for name, table in models_of(saved).items()}
        if "" in models:
            model = models[""]
        else:
            shares, seen = assigned(spec, agents_of(saved)), parts["env_spec"]
            model = JointModel(
                models, shares, {name: shares.spec(name, seen) for name in models}, seen, self.context.device
            )
            parts["policies"] = shares.policies
        parts["model"] = model
        components = assembly.stateful
        restore(components, {name: state for name, state in saved.states.items() if name in components}, {})
        return AgentParts(spec, parts["transforms"], model, assembly.context.device, saved, self._labels)

    def _model(self, policy: str, table: Mapping[str, Any]) -> Any:
        """Build the model of a policy; of the only one, its name is empty."""
        provided, config = self.component("model", table)
        self._labels["model"] = str(provided)
        if not policy:
            return self._assembly.part(provided, config, table.get("name", "model"), single=True)
        parts = self._assembly.context.built
        seen = parts["env_spec"]
        parts["env_spec"] = assigned(seen, agents_of(self._saved)).spec(policy, seen)
        try:
            return self._assembly.part(provided, config, policy)
        finally:
            parts["env_spec"] = seen

    def component(self, kind: str, table: Mapping[str, Any]) -> tuple[Provided, Any]:
        """Return the component of a section, and its keys; a loose file is imported only where it has the component.

        Raises:
            PluginError: it is not installed; says how to install it.
            ConfigError: a key that it does not know, or a value that does not fit.
        """
        plugin = table["use"].rpartition(":")[0]
        for file in self._code.files:
            if loose_name(file) == plugin and plugin not in self._host.loaded:
                self._code.load(self._host, file)
        keys = {name: value for name, value in table.items() if name not in _OURS}
        return find_component(self._host, kind, table["use"], keys)

    def _find_modules(self) -> None:
        """Make modules of the user's own importable, where the model or a transform names one."""
        values = {name: self._saved.config[name] for name in self._sections if name in self._saved.config}
        problems = self._code.find_modules(self._sections) if any(places_in(values)) else []
        if problems:
            raise ConfigError("; ".join(problems))

    def _transform(self, env: SpecEnv, table: Mapping[str, Any]) -> None:
        """Build a transform; what it learnt from frames before training is in its state."""
        parts = self._assembly.context.built
        provided, config = self.component("transform", table)
        transform = self._assembly.unfitted_transform(provided, config, table["name"], table.get("leaf"))
        self._labels[f"transform.{len(parts['transforms'])}"] = str(provided)
        try:
            transform.fit(TransformedEnv(env, parts["transforms"]))
        except NotSteppableError:
            if not offers(transform, Stateful):
                raise ConfigError(
                    f"{provided} takes frames of the env before training and does not save what it learns from them "
                    "(it has no state_dict), so there is no agent with it"
                ) from None
        self._assembly.put(transform)

    def _env_spec(self) -> EnvSpec:
        """Return the recorded spec of the env; a checkpoint without one is an older one, whose env is made for it."""
        if self._saved.env:
            try:
                return recorded_spec(self._saved.env)
            except Exception as error:  # a record that was made to harm raises anything
                path = self._saved.path
                raise StorageError(f"{path}: what it records of its env cannot be read: {error}") from None
        provided, config = self.component("env", self._saved.config["env"])
        context = self.context.for_component("env", "agent")
        with closing(provided.build(config.model_copy(update={"num_envs": 1}), context)) as env:
            return env.spec  # type: ignore[no-any-return]
