"""The sections of several policies: `[model.NAME]`, and what of the other sections is whose.

`[model.NAME]` with `agents` is a policy. `[loss]`, `[estimator]`, `[buffer]` and `[learner]` are for all of them, and a
table `[loss.NAME]` changes keys for one, or takes the place of the section where it names another component. A section
`[[optimizer]]` or `[[scheduler]]` is for all, or with `policy = "NAME"` for one; where a policy has some of its own,
they take the place of those for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rlcore.config.core import DEFAULT_USE, SAFE_NAME
from rlcore.config.entries import same_component
from rlcore.config.raw import RawConfig
from rlcore.errors import did_you_mean
from rlcore.plugins.component import is_repeated

# the sections of which every policy has its own part
OF_POLICIES: Final = ("model", "loss", "estimator", "optimizer", "scheduler", "buffer", "learner")
AGENTS: Final = "agents"
POLICY: Final = "policy"
PLUGIN: Final = "policies"  # has the parts of a run with several
SEVERAL: Final = "a run of several policies, [model.NAME],"  # in messages


@dataclass(frozen=True)
class Table:
    """A table that names a component.

    Attributes:
        keys: of it.
        label: where it stands, for messages, such as `loss`, `hook.1` or `model.hunters`.
        place: of its keys among the sources of values.
        policy: whose part it describes; empty where a run has one policy, or the part is that of all.
    """

    keys: dict[str, Any]
    label: str
    place: str
    policy: str = ""


def policies_of(raw: RawConfig) -> tuple[str, ...]:
    """Return the names of the policies of a config; empty where there is one, without a name."""
    return names_in(raw.values.get("model"))


def names_in(model: Any) -> tuple[str, ...]:
    """Return the names of the policies in a section `[model]`: its tables that name a component or agents."""
    if not isinstance(model, Mapping):
        return ()
    return tuple(
        name for name, value in model.items() if isinstance(value, Mapping) and ("use" in value or AGENTS in value)
    )


def tables(raw: RawConfig, section: str) -> list[Table]:
    """Return the tables of a section, that of a default component among them, and those of every policy."""
    value, repeated = raw.values.get(section), is_repeated(section)
    policies = policies_of(raw) if section in OF_POLICIES else ()
    if policies:
        of_policy = _repeated if repeated else _single
        return [table for policy in policies for table in of_policy(value, section, policy, policies)]
    if value is None:
        return [Table({}, section, section)] if section in DEFAULT_USE else []
    if not repeated:
        return [Table(value, section, section)]
    numbered = _numbered(value, section)
    for table in numbered if section in OF_POLICIES else ():
        table.keys.pop(POLICY, None)  # without policies it is a problem, which `policy_problems` tells
    return numbered


def _numbered(value: list[dict[str, Any]], section: str) -> list[Table]:
    several = len(value) > 1
    return [
        Table({**keys}, f"{section}.{index}" if several else section, f"{section}.{index}")
        for index, keys in enumerate(value)
    ]


def _single(value: Mapping[str, Any] | None, section: str, policy: str, policies: tuple[str, ...]) -> list[Table]:
    """Return what a policy has of a section that stands once: the keys for all, and on top of them its own."""
    common = {key: item for key, item in (value or {}).items() if key not in policies}
    table = (value or {}).get(policy)
    place = f"{section}.{policy}"
    if section == "model":
        return [Table(dict((value or {})[policy]), place, place, policy)]
    if isinstance(table, Mapping):
        default = DEFAULT_USE.get(section)
        if "use" in table and not same_component(common.get("use", default), table["use"]):
            common = {}
        return [Table({**common, **table, "name": policy}, place, place, policy)]
    if common or section in DEFAULT_USE:
        return [Table({**common, "name": policy}, section, section, policy)]
    return []


def _repeated(value: list[dict[str, Any]] | None, section: str, policy: str, policies: tuple[str, ...]) -> list[Table]:
    """Return what a policy has of a section that may stand several times: its own, or those for all."""
    entries = _numbered(value or [], section)
    of_policy = [entry for entry in entries if entry.keys.get(POLICY) == policy]
    chosen = of_policy or [entry for entry in entries if POLICY not in entry.keys]
    tables = []
    for entry in chosen:
        keys = {key: item for key, item in entry.keys.items() if key != POLICY}
        if "name" in keys:
            keys["name"] = qualified(str(keys["name"]), policy)
        tables.append(Table(keys, entry.label, entry.place, policy))
    return tables


def qualified(name: str, policy: str) -> str:
    """Return the name that an optimizer or scheduler of a policy has in a run: that of the policy in front."""
    return name if name.startswith(f"{policy}.") else f"{policy}.{name}"


def policy_problems(raw: RawConfig) -> list[str]:
    """Return what is wrong with the tables of several policies, apart from what their components know."""
    model, policies = raw.values.get("model"), policies_of(raw)
    if not policies:
        return [
            f"[{section}.{number}] {POLICY}: a run with one policy has no names for it; leave the key out, or name the "
            "policies by [model.NAME]"
            for section in ("optimizer", "scheduler")
            for number, entry in enumerate(raw.values.get(section) or [])
            if POLICY in entry
        ]
    assert isinstance(model, Mapping)
    problems = [
        f"[model] {key}: a config has one [model], or a [model.NAME] for each of several policies "
        f"({', '.join(policies)}); move the key into those, or leave them out"
        for key in model
        if key not in policies
    ]
    for name in policies:
        if not SAFE_NAME.fullmatch(name) or "." in name:
            problems.append(f"[model.{name}]: a policy is called by letters, digits, '_' and '-'")
        problems += _agent_problems(name, model[name].get(AGENTS))
    for section in OF_POLICIES:
        value = raw.values.get(section)
        if is_repeated(section):
            problems += _entry_problems(section, value or [], policies)
        elif section != "model" and isinstance(value, Mapping):
            problems += [
                f"[{section}.{key}]: there is no policy {key!r}{did_you_mean(key, policies)}; there are "
                f"{', '.join(policies)}"
                for key, item in value.items()
                if key not in policies and isinstance(item, Mapping) and ("use" in item or "use" not in value)
            ]
    return problems


def _agent_problems(policy: str, agents: Any) -> list[str]:
    if agents is None:
        return [f'[model.{policy}] {AGENTS}: missing; name the agents that it acts for, as ["adversary_*"]']
    if not (isinstance(agents, list) and agents and all(isinstance(agent, str) for agent in agents)):
        return [f'[model.{policy}] {AGENTS}: must be names of agents, as ["adversary_*"]; found {agents!r}']
    return []


def _entry_problems(section: str, entries: list[dict[str, Any]], policies: tuple[str, ...]) -> list[str]:
    named = [(number, entry[POLICY]) for number, entry in enumerate(entries) if POLICY in entry]
    return [
        f"[{section}.{number}] {POLICY}: there is no policy {name!r}{did_you_mean(str(name), policies)}; there are "
        f"{', '.join(policies)}"
        for number, name in named
        if name not in policies
    ]


def missing_sections(raw: RawConfig, required: tuple[str, ...]) -> list[str]:
    """Return a problem for each section that a run, or one of its policies, cannot do without."""
    policies = policies_of(raw)
    problems = [f"[{name}]: missing; every run needs one" for name in required if not raw.values.get(name)]
    for name in required:
        if name in OF_POLICIES and raw.values.get(name):
            has = {table.policy for table in tables(raw, name)}
            problems += [f"[{name}]: policy {policy!r} has none" for policy in policies if policy not in has]
    return problems
