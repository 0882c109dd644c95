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
    DEFAULT_USE,
    CheckpointConfig,
    MetricsConfig,
    PluginsConfig,
    RanksConfig,
    RunConfig,
)
from rlcore.config.entries import free_name
from rlcore.config.file import read
from rlcore.config.launchers import launcher_named
from rlcore.config.own_modules import folders_of, make_importable
from rlcore.config.problems import ConfigProblems
from rlcore.config.raw import VERSIONS, RawConfig
from rlcore.config.validation import check_section_names, checked, core_section
from rlcore.errors import ConfigError, PluginError
from rlcore.plugins.component import COMPONENT_SECTIONS
from rlcore.plugins.host import PluginHost, loose_name
from rlcore.plugins.registry import Provided
from rlcore.types.optional import Observer, offers

CORE: Final = ("run", "plugins", "metrics", "checkpoint")
# the key that all sections of a kind have besides those of their components
_COMMON: Final = {"logger": "required", "transform": "leaf"}
REQUIRED: Final = ("env", "model", "loss", "optimizer")


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
    """

    label: str
    name: str
    provided: Provided
    config: BaseModel
    required: bool = False
    leaf: str | None = None

    def dump(self) -> dict[str, Any]:
        """Return the section as it can be written into a resolved config."""
        use = f"{self.provided.owner.plugin}:{self.provided.component.name}"
        common: dict[str, Any] = {"required": True} if self.required else {}
        common |= {} if self.leaf is None else {"leaf": self.leaf}
        return {"use": use, "name": self.name, **common, **self.config.model_dump(mode="json", exclude_none=True)}


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

    def one(self, section: str) -> Section | None:
        """Return the only section of that name, or None."""
        entries = self.sections.get(section, [])
        return entries[0] if entries else None

    def missing(self) -> set[str]:
        """Return the sections of which a table did not fit, or which are missing; none where everything is valid."""
        incomplete = {name for name, sections in self.sections.items() if len(sections) < len(tables(self.raw, name))}
        return incomplete | {name for name in REQUIRED if not self.sections[name]}

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
                place = f"{section}.{entry.name}" if COMPONENT_SECTIONS[section][1] else section
                placed.append((place, entry.config))
        return placed

    def hooks_that_may_watch(self) -> tuple[str, ...]:
        """Return the names of the hooks that only watch (`observer = True`), or that only tell once they are built."""
        targets: dict[str, Any] = {hook.name: hook.provided.target() for hook in self.sections.get("hook", [])}
        unknown = tuple(name for name, target in targets.items() if not isinstance(target, type))
        return (
            *unknown,
            *(name for name, target in targets.items() if offers(target, Observer) and target.observer),
        )

    def resolved(self) -> dict[str, Any]:
        """Return the config with every default filled in and the versions of everything used."""
        result: dict[str, Any] = {
            "run": self.run.model_dump(),
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
            if dumped:
                result[section] = dumped if COMPONENT_SECTIONS[section][1] else dumped[0]
        if "checkpoint" in result:
            result["checkpoint"] |= self.checkpoint.model_dump(exclude_none=True)
        result[VERSIONS] = versions(self.host)
        return result


def _free_fields(schema: type[BaseModel]) -> list[str]:
    marked = {name: field.json_schema_extra for name, field in schema.model_fields.items()}
    return [name for name, extra in marked.items() if isinstance(extra, dict) and extra.get("free_at_resume")]


class InvalidConfig(ConfigProblems):
    """A config that does not fit the schemas of its sections.

    Attributes:
        rest: the sections that do fit; None where [run] does not.
    """

    def __init__(self, path: Path, problems: Iterable[str], rest: Config | None) -> None:
        super().__init__(path, problems)
        self.rest = rest


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


def load_config(
    path: str | Path | Mapping[str, Any],
    overrides: Iterable[str] = (),
    enable: Iterable[str] = (),
    disable: Iterable[str] = (),
) -> Config:
    """Read and validate a config.

    Args:
        path: a TOML file; or a mapping of what one would hold, `{"run": {...}, "hook": [{...}]}`, whose relative paths
            are relative to the working directory.
        overrides: `"section.key=value"`, as after `--set`.
        enable: further plugins to import.
        disable: plugins that must not be imported.

    Raises:
        ConfigError: one message with all problems of the config.
    """
    return validate(read(path if isinstance(path, Mapping) else Path(path), overrides), enable, disable)


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
    """
    problems: list[str] = []
    check_section_names(raw, problems)
    defaults = Defaults(raw)
    run, plugins, metrics, checkpoint = (core_section(raw, name, problems, defaults) for name in CORE)
    ranks = core_section(raw, "ranks", problems) if "ranks" in raw.values else None
    plugins = plugins or PluginsConfig()
    host = PluginHost(disable=[*plugins.disable, *disable])
    folders = folders_of(raw, plugins.path)
    problems += _launcher_problems(ranks, host)
    problems += make_importable(raw, folders) if import_files else []
    broken = _load_plugins(raw, host, [*plugins.enable, *enable], plugins.files if import_files else [], problems)
    if not import_files:
        broken |= {loose_name(Path(file)) for file in plugins.files}
    reading = _Reading(raw, defaults, host, broken, problems)
    sections = {name: _sections(reading, name) for name in COMPONENT_SECTIONS}
    sections["buffer"] = _with_discount_of_loss(raw, sections["buffer"], sections["loss"])
    problems += [f"[{name}]: missing; every run needs one" for name in REQUIRED if not raw.values.get(name)]
    metrics, checkpoint = metrics or MetricsConfig.model_validate({}), checkpoint or CheckpointConfig()
    config = Config(run, plugins, metrics, checkpoint, sections, raw, host, folders, ranks)
    problems += [] if config.missing() else defaults.unused()
    problems += check_discounts((entry.label, entry.config) for entries in sections.values() for entry in entries)
    if problems:
        raise InvalidConfig(raw.path, problems, None if run is None else config)
    return config


def find_launcher(ranks: RanksConfig, host: PluginHost) -> tuple[Provided, BaseModel]:
    """Return what starts ranks, with its keys; raises like `find_component`."""
    return find_component(host, "launcher", launcher_named(ranks.use), {})


def _launcher_problems(ranks: RanksConfig | None, host: PluginHost) -> list[str]:
    if ranks is None:
        return []
    try:
        find_launcher(ranks, host)
    except (PluginError, ConfigError) as error:
        return [f"[ranks] use: {error}; for ranks on this host set it to 'auto'"]
    return []


def tables(raw: RawConfig, section: str) -> list[dict[str, Any]]:
    """Return the tables of a section, that of a default component among them."""
    value = raw.values.get(section)
    if value is None:
        return [{}] if section in DEFAULT_USE else []
    return value if isinstance(value, list) else [value]


def _load_plugins(
    raw: RawConfig, host: PluginHost, enable: list[str], files: list[str], problems: list[str]
) -> set[str]:
    """Import what `enable`, `files` and the `use` keys name; return the plugins that could not be imported."""
    broken: set[str] = set()
    for file in files:
        try:
            host.load_file(raw.base / file)
        except PluginError as error:
            if not host.is_installed(name := loose_name(Path(file))):
                broken.add(name)
            problems.append(str(error))
    for name in enable:
        try:
            host.load(name)
        except PluginError as error:
            broken.add(name)
            problems.append(str(error))
    for section in COMPONENT_SECTIONS:
        for table in tables(raw, section):
            use = table.get("use", DEFAULT_USE.get(section))
            if not isinstance(use, str):
                continue
            plugin, _, name = use.rpartition(":")
            owner = plugin or name
            if owner not in broken and owner not in host.loaded and host.is_installed(owner):
                try:
                    host.load(owner)
                except PluginError as error:
                    broken.add(owner)
                    problems.append(f"[{section}] use: {error}")
    return broken


def _with_discount_of_loss(raw: RawConfig, buffers: list[Section], losses: list[Section]) -> list[Section]:
    """Return the buffer with the discount that it takes from the loss, and note where that is from."""
    loss = losses[0].config if losses else None
    found = [replace(buffer, config=with_discount_of(buffer.config, loss)) for buffer in buffers]
    if any(after.config is not before.config for after, before in zip(found, buffers, strict=True)):
        raw.sources["buffer.gamma"] = "[loss] gamma"
    return found


@dataclass(frozen=True)
class _Reading:
    """What the sections of components are validated with, and what was found to be wrong."""

    raw: RawConfig
    defaults: Defaults
    host: PluginHost
    broken: set[str]
    problems: list[str]


def _sections(reading: _Reading, section: str) -> list[Section]:
    kind, repeated = COMPONENT_SECTIONS[section]
    entries: list[Section] = []
    taken: set[str] = set()
    problems = reading.problems
    for index, table in enumerate(tables(reading.raw, section)):
        label = f"{section}.{index}" if repeated and len(tables(reading.raw, section)) > 1 else section
        keys = dict(table)
        use = keys.pop("use", DEFAULT_USE.get(section))
        if not isinstance(use, str):
            problems.append(f"[{label}] use: missing; name the {kind} to build")
            continue
        try:
            provided = reading.host.find(kind, use)
        except PluginError as error:
            plugin, _, short = use.rpartition(":")
            if (plugin or short) not in reading.broken:
                problems.append(f"[{label}] use: {error}")
            continue
        name = str(keys.pop("name", "")) or free_name(provided.component.name, taken)
        if name in taken:
            problems.append(f"[{label}] name: {name!r} is the name of another {kind}")
        taken.add(name)
        required = keys.pop("required", False) if kind == "logger" else False
        if not isinstance(required, bool):
            problems.append(f"[{label}] required: must be true or false, not {required!r}")
        leaf = keys.pop("leaf", None) if kind == "transform" else None
        if leaf is not None and not isinstance(leaf, str):
            problems.append(f"[{label}] leaf: must be the name of a leaf of the observations, not {leaf!r}")
        place = f"{section}.{index}" if repeated else section
        config = _validated(reading, provided, label, place, keys)
        if config is not None:
            entries.append(Section(label, name, provided, config, required is True, leaf))
    return entries


def _validated(reading: _Reading, provided: Provided, label: str, place: str, keys: dict[str, Any]) -> BaseModel | None:
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
    found: list[str] = []
    config = checked(schema, reading.defaults.fill(place, schema.model_fields, keys), label, str(provided), found, more)
    reading.problems.extend(reading.raw.with_source(line, label, place) for line in found)
    return config
