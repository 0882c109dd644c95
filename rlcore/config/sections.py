"""From a raw config to validated sections, each tied to the component that its `use` names.

All problems of a config are reported together. Reading the file is in `file.py`, building in the room `run/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from rlcore.config.common_keys import Defaults, check_discounts, with_discount_of
from rlcore.config.core import (
    CheckpointConfig,
    MetricsConfig,
    PluginsConfig,
    RanksConfig,
    RunConfig,
    default_use,
)
from rlcore.config.file import read
from rlcore.config.policies import PLUGIN, missing_sections, policies_of, policy_problems, tables
from rlcore.config.problems import ConfigProblems
from rlcore.config.raw import VERSIONS, RawConfig
from rlcore.config.reading import Reading, sections_of
from rlcore.config.reading import Section as Section
from rlcore.config.trust import OwnCode
from rlcore.config.validation import check_section_names, checked, core_section
from rlcore.errors import ConfigError, PluginError
from rlcore.plugins.component import COMPONENT_SECTIONS, is_repeated
from rlcore.plugins.host import PluginHost, loose_name
from rlcore.plugins.known import plugin_of
from rlcore.plugins.registry import Provided
from rlcore.types import Buffer
from rlcore.types.part import Part, defines, with_defaults

CORE: Final = ("run", "plugins", "metrics", "checkpoint")
REQUIRED: Final = ("env", "model", "loss", "optimizer")


@dataclass
class Config:
    """A config in which everything has been checked that can be checked without building it.

    Attributes:
        ranks: the processes that train together; None where there is one.
    """

    run: RunConfig
    plugins: PluginsConfig
    metrics: MetricsConfig
    checkpoint: CheckpointConfig
    sections: dict[str, list[Section]]
    raw: RawConfig
    host: PluginHost = field(repr=False)
    folders: list[Path] = field(default_factory=list)
    ranks: RanksConfig | None = None

    def core(self) -> dict[str, BaseModel]:
        """Return the sections that belong to no component."""
        ranks = {} if self.ranks is None else {"ranks": self.ranks}
        return {"run": self.run, "plugins": self.plugins, "metrics": self.metrics, **ranks}

    @property
    def policies(self) -> tuple[str, ...]:
        """The names of the policies; empty where there is one, without a name."""
        return tuple(entry.policy for entry in self.sections.get("model", []) if entry.policy)

    def of_policy(self, name: str) -> Config:
        """Return the config as one policy has it: its own sections, and those of all."""
        sections = {
            section: [entry for entry in entries if entry.policy in ("", name)]
            for section, entries in self.sections.items()
        }
        return replace(self, sections=sections)

    def one(self, section: str) -> Section | None:
        """Return the only section of that name, or None; of several policies each `of_policy` has its own."""
        entries = self.sections.get(section, [])
        return entries[0] if entries else None

    def missing(self) -> set[str]:
        """Return the sections of which a table did not fit, or which are missing; none where everything is valid."""
        incomplete = {name for name, sections in self.sections.items() if len(sections) < len(tables(self.raw, name))}
        return incomplete | {name for name in required(self.sections) if not self.sections[name]}

    def free_keys(self) -> tuple[str, ...]:
        """Return the dotted keys that say that they change no result, so that a resume may change them."""
        return tuple(f"{place}.{key}" for place, model in self._placed() for key in _free_fields(type(model)))

    def default_keys(self) -> tuple[str, ...]:
        """Return the dotted keys that have their defaults, with which an rlcore that had no such keys would agree."""
        return tuple(
            f"{place}.{key}"
            for place, model in self._placed()
            for key in sorted({*type(model).model_fields} - {*model.model_dump(exclude_defaults=True)})
        )

    def _placed(self) -> list[tuple[str, BaseModel]]:
        """Return every section with its place in the resolved config."""
        placed: list[tuple[str, BaseModel]] = [("run", self.run)]
        placed += [] if self.ranks is None else [("ranks", self.ranks)]
        for section, entries in self.sections.items():
            for entry in entries:
                named = is_repeated(section) or entry.policy
                place = f"{section}.{entry.name}" if named else section
                placed.append((place, entry.config))
        return placed

    def hooks_that_may_watch(self) -> tuple[str, ...]:
        """Return the names of the hooks that only watch (`observer = True`), or that only tell once they are built."""
        targets: dict[str, Any] = {hook.name: hook.provided.target() for hook in self.sections.get("hook", [])}
        unknown = tuple(name for name, target in targets.items() if not isinstance(target, type))
        return (
            *unknown,
            *(name for name, target in targets.items() if with_defaults(target, Part).observer),
        )

    def resolved(self) -> dict[str, Any]:
        """Return the config with every default filled in and the versions of everything used."""
        result: dict[str, Any] = {
            "run": self.run.model_dump(exclude_none=True),
            "plugins": {
                **self.plugins.model_dump(),
                "files": [str(self.raw.base / name) for name in self.plugins.files],
                "path": [str(folder) for folder in self.folders],
            },
            "metrics": self.metrics.model_dump(),
        }
        if self.ranks is not None:
            result["ranks"] = self.ranks.model_dump()
        for section, entries in self.sections.items():
            dumped = [entry.dump() for entry in entries]
            if dumped and entries[0].policy and not is_repeated(section):
                result[section] = {entry.policy: table for entry, table in zip(entries, dumped, strict=True)}
            elif dumped:
                result[section] = dumped if is_repeated(section) else dumped[0]
        if "checkpoint" in result:
            result["checkpoint"] |= self.checkpoint.model_dump(exclude_none=True)
        result[VERSIONS] = versions(self.host)
        return result


class InvalidConfig(ConfigProblems):
    """A config that does not fit the schemas of its sections.

    Attributes:
        rest: the sections that do fit; None where [run] does not.
    """

    def __init__(self, path: Path, problems: Iterable[str], rest: Config | None) -> None:
        super().__init__(path, problems)
        self.rest = rest


def load_config(
    path: str | Path | Mapping[str, Any],
    overrides: Iterable[str] = (),
    enable: Iterable[str] = (),
    disable: Iterable[str] = (),
    trust: bool = False,
) -> Config:
    """Read and validate a config.

    Args:
        path: a TOML file; or a mapping of what one would hold, `{"run": {...}, "hook": [{...}]}`, whose relative paths
            are relative to the working directory.
        overrides: `"section.key=value"`, as after `--set`.
        enable: further plugins to import.
        disable: plugins that must not be imported.
        trust: run the code that a config names which was not written here, and remember to.

    Raises:
        ConfigError: one message with all problems of the config; or its code may not run here.
    """
    raw = read(path if isinstance(path, Mapping) else Path(path), overrides, trust=trust)
    return validate(raw, enable, disable)


def validate(
    raw: RawConfig, enable: Iterable[str] = (), disable: Iterable[str] = (), import_files: bool = True
) -> Config:
    """Load the plugins that the config names and check every section against its component's schema.

    Args:
        raw: the config.
        enable: further plugins to import.
        disable: plugins that must not be imported.
        import_files: whether to import the loose files that the config names; without them, sections that use one are
            left out.

    Raises:
        InvalidConfig: one message with all problems.
        UntrustedError: the code that it names may not run here.
    """
    problems: list[str] = []
    check_section_names(raw, problems)
    problems += policy_problems(raw)
    defaults = Defaults(raw)
    run, plugins, metrics, checkpoint = (core_section(raw, name, problems, defaults) for name in CORE)
    ranks = core_section(raw, "ranks", problems, defaults) if "ranks" in raw.values else None
    plugins = plugins or PluginsConfig()
    host = PluginHost(disable=[*plugins.disable, *disable])
    code = OwnCode(raw)
    problems += _launcher_problems(ranks, host)
    problems += code.find_modules() if import_files else []
    broken = _load_files(code, host, problems) if import_files else set()
    of_policies = [PLUGIN] if policies_of(raw) and host.is_installed(PLUGIN) else []  # the builder says what is missing
    broken |= _load_plugins(raw, host, [*plugins.enable, *enable, *of_policies], problems)
    if not import_files:
        broken |= {loose_name(Path(file)) for file in plugins.files}
    reading = Reading(raw, defaults, host, broken, problems)
    sections = {name: sections_of(reading, name) for name in COMPONENT_SECTIONS}
    problems += [] if reading.unknown or broken else reading.unnamed
    sections["buffer"] = _with_discount_of_loss(raw, sections["buffer"], sections["loss"])
    problems += missing_sections(raw, required(sections))
    metrics, checkpoint = metrics or MetricsConfig.model_validate({}), checkpoint or CheckpointConfig()
    config = Config(run, plugins, metrics, checkpoint, sections, raw, host, code.folders, ranks)
    problems += [] if config.missing() else defaults.unused()
    problems += _discount_problems(config)
    if problems:
        raise InvalidConfig(raw.path, problems, None if run is None else config)
    return config


def required(sections: Mapping[str, list[Section]]) -> tuple[str, ...]:
    """Return the sections that a config must have: the env too, unless the buffer knows its spaces."""
    buffers = () if sections["env"] else sections["buffer"]
    knows_spaces = any(defines(buffer.provided.target(), Buffer.spec_of) for buffer in buffers)
    return tuple(name for name in REQUIRED if not (name == "env" and knows_spaces))


def _free_fields(schema: type[BaseModel]) -> list[str]:
    marked = {name: field.json_schema_extra for name, field in schema.model_fields.items()}
    return [name for name, extra in marked.items() if isinstance(extra, dict) and extra.get("free_at_resume")]


def find_component(host: PluginHost, kind: str, use: str, keys: dict[str, Any]) -> tuple[Provided, BaseModel]:
    """Return the component that `use` names, with its validated keys, as a script builds it without a config.

    Raises:
        PluginError: there is no such component; says how to install it.
        ConfigError: a key that it does not know, or a value that does not fit.
    """
    host.load_for(use)
    provided = host.find(kind, use)
    problems: list[str] = []
    config = checked(provided.schema(), keys, kind, str(provided), problems)
    if config is None:
        raise ConfigError("; ".join(problems))
    return provided, config


def versions(host: PluginHost) -> dict[str, str]:
    """Return the versions of Python, of the main dependencies and of every loaded plugin."""
    return _main_versions() | {owner.distribution: owner.version for owner in host.loaded.values()}


@cache
def _main_versions() -> dict[str, str]:
    """Return what does not change within a process; reading metadata takes milliseconds."""
    import platform
    from importlib.metadata import version

    distributions = ("rlcore", "torch", "tensordict", "numpy", "gymnasium")
    return {"python": platform.python_version()} | {name: version(name) for name in distributions}


def find_launcher(ranks: RanksConfig, host: PluginHost) -> tuple[Provided, BaseModel]:
    """Return what starts ranks, with its keys; raises like `find_component`."""
    return find_component(host, "launcher", ranks.launcher, ranks.launcher_keys)


def _launcher_problems(ranks: RanksConfig | None, host: PluginHost) -> list[str]:
    problems: list[str] = []
    if ranks is None:
        return problems
    try:
        provided, _ = find_launcher(RanksConfig.model_validate({"use": ranks.use}), host)
    except (PluginError, ConfigError) as error:
        return [f"[ranks] use: {error}; for ranks on this host set it to 'auto'"]
    checked(provided.schema(), ranks.launcher_keys, "ranks", str(provided), problems, RanksConfig.model_fields)
    return problems


def _load_files(code: OwnCode, host: PluginHost, problems: list[str]) -> set[str]:
    """Import loose files; return the plugins that could not be imported."""
    broken: set[str] = set()
    for file in code.files:
        try:
            code.load(host, file)
        except PluginError as error:
            if not host.is_installed(name := loose_name(file)):
                broken.add(name)
            problems.append(str(error))
    return broken


def _load_plugins(raw: RawConfig, host: PluginHost, enable: list[str], problems: list[str]) -> set[str]:
    """Import what `enable` and the `use` keys name; return the plugins that could not be imported."""
    broken: set[str] = set()
    for name in enable:
        try:
            host.load(name)
        except PluginError as error:
            broken.add(name)
            problems.append(str(error))
    for section in COMPONENT_SECTIONS:
        for table in tables(raw, section):
            use = table.keys.get("use", default_use(section, raw.values))
            if not isinstance(use, str):
                continue
            owner = plugin_of(use)
            if owner not in broken and owner not in host.loaded and host.is_installed(owner):
                try:
                    host.load(owner)
                except PluginError as error:
                    broken.add(owner)
                    problems.append(f"[{section}] use: {error}")
    return broken


def _with_discount_of_loss(raw: RawConfig, buffers: list[Section], losses: list[Section]) -> list[Section]:
    """Return the buffers with the discount that each takes from its loss, and note where that is from."""
    of_policy = {loss.policy: loss for loss in losses}
    filled = []
    for buffer in buffers:
        loss = of_policy.get(buffer.policy)
        keys = with_discount_of(buffer.config, None if loss is None else loss.config)
        if loss is not None and keys is not buffer.config:
            raw.sources[f"{buffer.label}.gamma"] = f"[{loss.label}] gamma"
        filled.append(replace(buffer, config=keys))
    return filled


def _discount_problems(config: Config) -> list[str]:
    """Return a problem where discounts differ that one policy is trained with."""
    problems = []
    for policy in config.policies or ("",):
        entries = [entry for section in config.of_policy(policy).sections.values() for entry in section]
        problems += check_discounts((entry.label, entry.config) for entry in entries)
    return list(dict.fromkeys(problems))
