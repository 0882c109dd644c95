"""Building model and transforms from what was saved of them, and nothing of the training."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import torch

from rlcore.config.core import PluginsConfig
from rlcore.config.own_modules import places_in
from rlcore.config.policies import AGENTS, SEVERAL
from rlcore.config.raw import RawConfig
from rlcore.config.reading import Section
from rlcore.config.trust import OwnCode
from rlcore.envs.spec_records import recorded_spec
from rlcore.errors import ConfigError, StorageError
from rlcore.plugins.host import PluginHost, loose_name
from rlcore.plugins.known import lend
from rlcore.run.assembly import Assembly, section_of
from rlcore.run.saved import Saved, agents_of, models_of
from rlcore.state.restoring import restore
from rlcore.types import Context, EnvSpec, Model, Progress, RunInfo, Transform

# keys of a section that are none of its component
_COMMON: Final = ("name", "leaf")


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


class AgentBuilder:
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
        assembly, saved, labels = self._assembly, self._saved, {}
        spec = self._env_spec()
        assembly.spaces(spec)
        for number, table in enumerate(saved.config.get("transform", [])):
            section = self.section("transform", table)
            labels[f"transform.{number}"] = str(section.provided)
            assembly.transform(section, restored=True)
        parts = assembly.context.built
        agents = agents_of(saved)
        shares = lend("rlcore.run", "assigned", SEVERAL)(spec, agents) if agents else None
        models = {}
        for name, table in models_of(saved).items():
            section = self.section("model", {**table, "name": name or table.get("name", "model")})
            labels["model"] = str(section.provided)
            own = assembly if shares is None else assembly.of_policy(shares.spec(name, parts["env_spec"]))
            models[name] = own.part(section, single=shares is None)
        if shares is None:
            (parts["model"],) = models.values()
        else:
            joint_model = lend("rlcore.run", "JointModel", SEVERAL)
            parts["model"] = joint_model(models, shares, parts["env_spec"], self.context.device)
            parts["policies"] = shares.policies
        components = assembly.stateful
        restore(components, {name: state for name, state in saved.states.items() if name in components}, {})
        return AgentParts(spec, parts["transforms"], parts["model"], self.context.device, saved, labels)

    def section(self, kind: str, table: Mapping[str, Any]) -> Section:
        """Return a section by its table; a loose file is imported only where it has the component.

        Raises:
            PluginError: it is not installed; says how to install it.
            ConfigError: a key that it does not know, or a value that does not fit.
        """
        plugin = table["use"].rpartition(":")[0]
        for file in self._code.files:
            if loose_name(file) == plugin and plugin not in self._host.loaded:
                self._code.load(self._host, file)
        keys = {key: value for key, value in table.items() if key not in ("use", AGENTS, *_COMMON)}
        common = {key: table[key] for key in _COMMON if key in table}
        return section_of(self._host, kind, table["use"], keys, **common)

    def _find_modules(self) -> None:
        """Make modules of the user's own importable, where the model or a transform names one."""
        values = {name: self._saved.config[name] for name in self._sections if name in self._saved.config}
        problems = self._code.find_modules(self._sections) if any(places_in(values)) else []
        if problems:
            raise ConfigError("; ".join(problems))

    def _env_spec(self) -> EnvSpec:
        """Return the recorded spec of the env; a checkpoint without one is an older one, whose env is made for it."""
        if self._saved.env:
            try:
                return recorded_spec(self._saved.env)
            except Exception as error:  # a record that was made to harm raises anything
                path = self._saved.path
                raise StorageError(f"{path}: what it records of its env cannot be read: {error}") from None
        section, context = self.section("env", self._saved.config["env"]), self.context.for_component("env", "agent")
        with closing(section.provided.build(section.config.model_copy(update={"num_envs": 1}), context)) as env:
            return env.spec  # type: ignore[no-any-return]
