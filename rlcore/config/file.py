"""Reading a config: TOML text, overrides and the sections that are the core's own.

What the components' sections may contain is each component's schema; see `sections.py`.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError, create_model, field_validator

from rlcore.errors import ConfigError, did_you_mean
from rlcore.types.progress import Every


def _checked_interval(value: Any) -> Any:
    counts = value.values() if isinstance(value, dict) else [value]
    if any(isinstance(count, bool) or not isinstance(count, int) for count in counts):
        raise ValueError("an interval is a number of frames, or names another clock: { updates = 500 }")
    try:
        Every(value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return value


# for `json_schema_extra` of a field: a resume may change it, since it changes no result
FREE_AT_RESUME: Final[dict[str, Any]] = {"free_at_resume": True}
Interval = Annotated[int | dict[str, int], BeforeValidator(_checked_interval)]

SAFE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
CKPT_BACKEND: Final = "CKPT_BACKEND"
BACKEND_ALIASES: Final = {"memmap": "torch"}


class Secret(BaseModel, extra="forbid"):
    """A value that the config only refers to: `{ env = "NAME" }`. It stays a reference in everything written."""

    env: str = Field(description="environment variable that holds the value")

    def reveal(self) -> str:
        """Return the value.

        Raises:
            ConfigError: the environment variable is not set.
        """
        try:
            return os.environ[self.env]
        except KeyError:
            raise ConfigError(f"environment variable {self.env!r}, which the config refers to, is not set") from None


class RunConfig(BaseModel, extra="forbid"):
    """The run itself."""

    name: str = Field("run", description="name of the run and of its folder")
    seed: int = Field(1, ge=0, lt=2**63, description="the one seed; every generator is derived from it")
    total_frames: int = Field(gt=0, description="environment frames to train for, and the horizon of every schedule")
    device: str = Field("auto", description="auto (CUDA where there is one), cpu, cuda or cuda:N")
    folder: str = Field("runs", description="where run folders are made, relative to the working directory")
    hang_after: int = Field(
        60,
        ge=0,
        description="seconds without a step after which a run ends; 0: never",
        json_schema_extra=FREE_AT_RESUME,
    )
    deterministic: bool = Field(False, description="refuse kernels of CUDA that do not repeat to the bit")
    threads: int = Field(1, ge=1, description="CPU threads of torch; one is fastest for small networks")

    @property
    def place(self) -> Path:
        """The run folder."""
        return Path(self.folder) / self.name

    @field_validator("name")
    @classmethod
    def _stays_inside(cls, name: str) -> str:
        if not SAFE_NAME.fullmatch(name):
            raise ValueError(
                "a run name is a folder name: letters, digits, '.', '_' and '-', at most 100, first a letter or digit"
            )
        return name

    @field_validator("device")
    @classmethod
    def _known_device(cls, device: str) -> str:
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
            raise ValueError("a device is auto, cpu, cuda or cuda:N")
        return device


class PluginsConfig(BaseModel, extra="forbid"):
    """Plugins beyond those that `use` names."""

    enable: list[str] = Field(default_factory=list, description="further plugins to import")
    disable: list[str] = Field(default_factory=list, description="plugins that must not be imported")
    files: list[str] = Field(default_factory=list, description="loose plugin files, relative to the config")


class MetricsConfig(BaseModel, extra="forbid"):
    """When metrics are reduced and written."""

    every: Interval = Field(10_000, description="interval of writing; values in between are reduced, none is lost")


# a field that is called like a word of Python cannot be written in a class
_Async: Any = create_model(
    "_Async",
    **{"async": (bool, Field(False, description="copy the state, and write it while training goes on"))},  # type: ignore[call-overload]
)


class CheckpointConfig(_Async):  # type: ignore[misc]
    """When checkpoints are written and which are kept; further keys belong to the back end."""

    every: Interval | None = Field(None, description="interval of saving; default: a tenth of the run")
    keep_last: int = Field(2, ge=1, description="how many of the newest checkpoints are kept")
    keep_best: bool = Field(True, description="also keep the checkpoint with the best evaluation")
    on_failure: Literal["stop", "warn"] = Field(
        "stop", description="a checkpoint that cannot be written: stop, or warn and go on; the last one always stops"
    )

    @property
    def in_background(self) -> bool:
        """The key `async`."""
        return bool(getattr(self, "async"))


CORE_SECTIONS: Final[dict[str, type[BaseModel]]] = {
    "run": RunConfig,
    "plugins": PluginsConfig,
    "metrics": MetricsConfig,
}
# section name to (kind, whether it can be repeated)
COMPONENT_SECTIONS: Final[dict[str, tuple[str, bool]]] = {
    "env": ("env", False),
    "transform": ("transform", True),
    "model": ("model", False),
    "loss": ("loss", False),
    "estimator": ("estimator", False),
    "optimizer": ("optimizer", True),
    "scheduler": ("scheduler", True),
    "collector": ("collector", False),
    "buffer": ("buffer", False),
    "learner": ("learner", False),
    "evaluator": ("evaluator", False),
    "checkpoint": ("checkpointer", False),
    "logger": ("logger", True),
    "hook": ("hook", True),
}
# read back from a resolved config, where it records what was installed
VERSIONS: Final = "versions"


@dataclass
class RawConfig:
    """A config before any component has looked at it.

    Attributes:
        values: section name to table, or to a list of tables for sections that can be repeated.
        path: the file.
        sources: key path to where a value came from, for values that are not from the file.
    """

    values: dict[str, Any]
    path: Path
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def of_a_run(self) -> bool:
        """Whether this is the config of a run folder, which may be somebody else's."""
        return VERSIONS in self.values

    @property
    def base(self) -> Path:
        """The folder that relative paths of the config refer to."""
        return self.path.resolve().parent


def chosen_backend(environment: Mapping[str, str] | None = None) -> str:
    """Return the checkpoint back end that the environment variable `CKPT_BACKEND` names, or an empty string.

    `memmap`, which is TorchRL's name for files that are mapped when they are read, stands for `torch`, which does so.
    """
    named = (os.environ if environment is None else environment).get(CKPT_BACKEND, "")
    return BACKEND_ALIASES.get(named, named)


def read(path: Path, overrides: Iterable[str] = (), environment: Mapping[str, str] | None = None) -> RawConfig:
    """Read a config file and apply overrides.

    Args:
        path: a TOML file.
        overrides: `"section.key=value"`, as after `--set`; the value is TOML, or else a string.
        environment: where `CKPT_BACKEND` is looked up; default: the process's environment.

    Raises:
        ConfigError: no such file, not TOML, an override that does not fit, a section that is not a table.
    """
    raw = RawConfig(_parse(path), path)
    _normalise(raw)
    for override in overrides:
        _override(raw, override)
    backend = chosen_backend(environment)
    if backend:
        raw.values.setdefault("checkpoint", {})["use"] = backend
        raw.sources["checkpoint.use"] = f"environment variable {CKPT_BACKEND}"
    return raw


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"config file {str(path)!r} does not exist") from None
    except IsADirectoryError:
        raise ConfigError(f"config {str(path)!r} is a folder; name a TOML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {str(path)!r} cannot be read: {error}") from error
    try:
        return tomllib.loads(text)
    except ValueError as error:  # of TOML, or an integer of thousands of digits
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not valid TOML: nested too deeply") from None


def _normalise(raw: RawConfig) -> None:
    """Make repeated sections lists, refuse what is not a table."""
    for section, value in raw.values.items():
        repeated = COMPONENT_SECTIONS.get(section, ("", False))[1]
        tables = value if isinstance(value, list) and repeated else [value]
        if not all(isinstance(table, dict) for table in tables):
            form = f"[[{section}]]" if repeated else f"[{section}]"
            raise ConfigError(f"{raw.path}: {section} must be a table: write {form}, then its keys below")
        if repeated:
            raw.values[section] = tables


def _override(raw: RawConfig, text: str) -> None:
    key, equals, value_text = text.partition("=")
    path = key.strip().split(".")
    if not equals or len(path) < 2 or not all(path):
        raise ConfigError(f"override {text!r} must read section.key=value")
    try:
        value = tomllib.loads(f"value = {value_text}")["value"]
    except ValueError:
        value = value_text
    target, keys = raw.values, path
    if COMPONENT_SECTIONS.get(path[0], ("", False))[1]:
        if not path[1].isdecimal():
            path.insert(1, "0")
        target, keys = _repeated_table(raw, path[0], int(path[1]), text), path[2:]
    if not keys:
        raise ConfigError(f"override {text!r} must read section.number.key=value")
    for part in keys[:-1]:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            raise ConfigError(f"override {text!r}: {part!r} is not a table")
    target[keys[-1]] = value
    raw.sources[".".join(path)] = "--set"


def _repeated_table(raw: RawConfig, section: str, index: int, text: str) -> dict[str, Any]:
    """Return table number `index` of a repeated section; the number after the last one makes a new table."""
    tables = raw.values.setdefault(section, [])
    if index > len(tables):
        raise ConfigError(f"override {text!r}: there are only {len(tables)} [[{section}]] sections")
    if index == len(tables):
        tables.append({})
    return tables[index]  # type: ignore[no-any-return]


def core_section(raw: RawConfig, section: str, problems: list[str]) -> Any:
    """Return the validated core section, or None after adding to `problems`."""
    return checked(CORE_SECTIONS[section], raw.values.get(section, {}), section, "the core", problems)


def checked(
    schema: type[BaseModel],
    keys: Mapping[str, Any],
    section: str,
    owner: str,
    problems: list[str],
    more: Iterable[str] = (),
) -> BaseModel | None:
    """Return the validated keys of a section, or None after adding to `problems`."""
    lines, model, taken = _taken(schema, keys, section, owner, more)
    lines += [
        f"[{section}] {key}: {wrong}; found {value!r} ({owner})"
        for key, value in keys.items()
        if key in taken and (wrong := _misread(value, taken[key]))
    ]
    problems += lines
    return None if lines else model


def _taken(
    schema: type[BaseModel], keys: Mapping[str, Any], section: str, owner: str, more: Iterable[str]
) -> tuple[list[str], BaseModel | None, dict[str, Any]]:
    """Return what is wrong with a section, its model where nothing is, and what each right key was taken for."""
    try:
        model = schema.model_validate(keys)
        return [], model, {key: getattr(model, key, None) for key in keys}
    except ValidationError as error:
        lines = explain(error, schema, section, owner, more)
        wrong = {problem["loc"][0]: problem["type"] for problem in error.errors() if problem["loc"]}
    known = {key: value for key, value in keys.items() if wrong.get(key) != "extra_forbidden"}
    if len(known) < len(keys):  # what depends on several keys is only looked at where each of them can be read
        further, _, taken = _taken(schema, known, section, owner, more)
        return list(dict.fromkeys([*lines, *further])), None, taken
    return lines, None, {key: _alone(schema, key, value) for key, value in keys.items() if key not in wrong}


def _alone(schema: type[BaseModel], key: str, value: Any) -> Any:
    """Return what one key of a section is taken for; itself where that needs the whole section."""
    known = schema.model_fields.get(key)
    try:
        return value if known is None else TypeAdapter(known.rebuild_annotation()).validate_python(value)
    except ValidationError:
        return value


def _misread(given: Any, taken: Any) -> str:
    """Say what is wrong when text, numbers and truth values were turned into each other, or a number is NaN."""
    if isinstance(given, list) and isinstance(taken, list | tuple):
        return next((wrong for pair in zip(given, taken, strict=False) if (wrong := _misread(*pair))), "")
    if isinstance(given, float) and math.isnan(given):
        return "must be a number, not NaN"
    was, now = _kind(given), _kind(taken)
    return f"must be {now}" if was and now and was != now else ""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    return "a number" if isinstance(value, int | float) else ""


def check_section_names(raw: RawConfig, problems: list[str]) -> None:
    """Add a problem for each section that nothing knows."""
    known = [*CORE_SECTIONS, *COMPONENT_SECTIONS]
    for section in raw.values:
        if section not in known and section != VERSIONS:
            problems.append(f"[{section}]: unknown section{did_you_mean(section, known)}")


def explain(
    error: ValidationError, schema: type[BaseModel], section: str, owner: str, more: Iterable[str] = ()
) -> list[str]:
    """Return one line per problem: section, key, what was expected, whose it is, the nearest known key.

    Args:
        error: of the validation.
        schema: of the section.
        section: where it stands.
        owner: whose it is.
        more: keys of the section that are not in the schema.
    """
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = [*_keys_at(schema, problem["loc"][:-1]), *more]
            guess = did_you_mean(str(problem["loc"][-1]), known) or f"; known keys: {', '.join(known) or 'none'}"
            lines.append(f"[{section}] {key}: unknown key for {owner}{guess}")
        elif problem["type"] == "missing":
            lines.append(f"[{section}] {key}: missing, and {owner} needs it")
        else:
            found = f"; found {problem['input']!r}" if not isinstance(problem["input"], dict) else ""
            lines.append(f"[{section}] {key}: {problem['msg'].removeprefix('Value error, ')}{found} ({owner})")
    return lines


def _keys_at(schema: Any, location: tuple[Any, ...]) -> list[str]:
    for part in location:
        field_info = schema.model_fields.get(part) if hasattr(schema, "model_fields") else None
        schema = field_info.annotation if field_info else None
    return list(schema.model_fields) if hasattr(schema, "model_fields") else []
