"""Holding the tables of a config against the schemas of the components that they name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel

from rlcore.config.common_keys import Defaults
from rlcore.config.core import CheckpointConfig, default_use
from rlcore.config.entries import free_name
from rlcore.config.policies import AGENTS, POLICY, Table, qualified, tables
from rlcore.config.raw import RawConfig
from rlcore.config.validation import checked
from rlcore.errors import PluginError, UnnamedPluginError
from rlcore.plugins.component import COMPONENT_SECTIONS, is_repeated
from rlcore.plugins.host import PluginHost
from rlcore.plugins.known import plugin_of
from rlcore.plugins.registry import Provided

# the key that all sections of a kind have besides those of their components
_COMMON: Final = {"logger": "required", "transform": "leaf"}


@dataclass(frozen=True)
class Section:
    """One validated component section.

    Attributes:
        label: where it stands, such as `loss` or `hook.1`.
        name: name of the component instance, unique in its kind.
        provided: the component, with its owner.
        config: the validated keys.
        required: of a logger: whether a failure at its start ends the run.
        leaf: of a transform: of the observations that it changes; None where these are one array.
        policy: whose part it is; empty where a run has one policy, or the part is that of all.
        agents: of the model of a policy: the names of the agents that it acts for.
    """

    label: str
    name: str
    provided: Provided
    config: BaseModel
    required: bool = False
    leaf: str | None = None
    policy: str = ""
    agents: tuple[str, ...] = ()

    def dump(self) -> dict[str, Any]:
        """Return the section as it can be written into a resolved config."""
        common: dict[str, Any] = {"required": True} if self.required else {}
        common |= {} if self.leaf is None else {"leaf": self.leaf}
        common |= {AGENTS: list(self.agents)} if self.agents else {}
        common |= {POLICY: self.policy} if self.policy and is_repeated(self.provided.component.kind) else {}
        return {
            "use": self.provided.use,
            "name": self.name,
            **common,
            **self.config.model_dump(mode="json", exclude_none=True),
        }


@dataclass(frozen=True)
class Reading:
    """What the sections of components are validated with, and what was found to be wrong.

    Attributes:
        unnamed: problems of components of plugins that no other section names.
        unknown: what `use` says that nothing provides, and that may have meant to name those plugins.
    """

    raw: RawConfig
    defaults: Defaults
    host: PluginHost
    broken: set[str]
    problems: list[str]
    unnamed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def sections_of(reading: Reading, section: str) -> list[Section]:
    """Return the sections of a name that fit, and note what is wrong with the others."""
    entries: list[Section] = []
    names: set[str] = set()
    for table in tables(reading.raw, section):
        entry = _section(reading, section, table, names)
        if entry is not None:
            entries.append(entry)
    return entries


def _section(reading: Reading, section: str, table: Table, names: set[str]) -> Section | None:
    kind, label, problems = COMPONENT_SECTIONS[section][0], table.label, reading.problems
    keys = dict(table.keys)
    use = keys.pop("use", default_use(section, reading.raw.values))
    if not isinstance(use, str):
        problems.append(f"[{label}] use: missing; name the {kind} to build")
        return None
    try:
        provided = reading.host.find(kind, use)
    except PluginError as error:
        if isinstance(error, UnnamedPluginError):
            reading.unnamed.append(f"[{label}] use: {error}")
        elif plugin_of(use) not in reading.broken:
            problems.append(f"[{label}] use: {error}")
            reading.unknown.append(use)
        return None
    name = keys.pop("name", "")
    if not isinstance(name, str):
        problems.append(f"[{label}] name: must be text, not {name!r}")
    name = _name(str(name), provided, table, names)
    if name in names:
        problems.append(f"[{label}] name: {name!r} is the name of another {kind}")
    names.add(name)
    required = keys.pop("required", False) if kind == "logger" else False
    if not isinstance(required, bool):
        problems.append(f"[{label}] required: must be true or false, not {required!r}")
    leaf = keys.pop("leaf", None) if kind == "transform" else None
    if leaf is not None and not isinstance(leaf, str):
        problems.append(f"[{label}] leaf: must be the name of a leaf of the observations, not {leaf!r}")
    listed = keys.pop(AGENTS, None) if kind == "model" and table.policy else None
    agents = tuple(listed) if isinstance(listed, list) else ()
    config = _validated(reading, provided, label, table.place, keys)
    if config is None:
        return None
    _load_plugins_of_keys(reading, label, config)
    return Section(label, name, provided, config, required is True, leaf, table.policy, agents)


def _load_plugins_of_keys(reading: Reading, label: str, config: BaseModel) -> None:
    """Import the plugins that do what keys of a section ask for, so that their versions are those of the run too."""
    for key, value in config:
        extra = type(config).model_fields[key].json_schema_extra
        if isinstance(extra, dict) and "plugin" in extra and value:
            try:
                reading.host.load(str(extra["plugin"]))
            except PluginError as error:
                reading.problems.append(f"[{label}] {key} = true: {error}")


def _name(key: str, provided: Provided, table: Table, names: set[str]) -> str:
    """Return the name of a section: its key `name`, or that of its component, behind that of its policy."""
    component, policy = provided.component, table.policy
    if not policy:
        return key or free_name(component.name, names)
    if not is_repeated(component.kind):
        return policy
    return qualified(key or free_name(component.name, {name.removeprefix(f"{policy}.") for name in names}), policy)


def _validated(reading: Reading, provided: Provided, label: str, place: str, keys: dict[str, Any]) -> BaseModel | None:
    """Return the validated keys of a section, or None after adding to the problems."""
    more: Iterable[str] = ()
    if provided.component.kind == "checkpointer":
        more = CheckpointConfig.model_fields
        keys = {key: value for key, value in keys.items() if key not in more}
    elif provided.component.kind in _COMMON:
        more = (_COMMON[provided.component.kind],)
    try:
        schema = provided.schema()
    except PluginError as error:
        reading.problems.append(f"[{label}] {error}")
        return None
    wrong: list[str] = []
    config = checked(schema, reading.defaults.fill(place, schema.model_fields, keys), label, str(provided), wrong, more)
    reading.problems.extend(reading.raw.with_source(line, label, place) for line in wrong)
    return config
