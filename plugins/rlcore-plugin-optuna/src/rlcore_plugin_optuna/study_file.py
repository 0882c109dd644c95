"""The study file: what a study is, as its TOML file says."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, ValidationError, field_validator, model_validator

from rlcore.errors import ConfigError


class Range(BaseModel, extra="forbid", strict=True, allow_inf_nan=False):
    """Numbers from low to high; integers where both are."""

    low: int | float
    high: int | float
    log: bool = False
    step: int | float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _goes_up(self) -> Range:
        if not self.low < self.high:
            raise ValueError(f"low = {self.low} must be below high = {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"log = true needs a low above 0, not {self.low}")
        if self.log and self.step is not None:
            raise ValueError("log and step exclude each other")
        if self.is_integer and isinstance(self.step, float):
            raise ValueError(f"step = {self.step} does not fit integers")
        return self

    @property
    def is_integer(self) -> bool:
        """Whether it is of integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)


class StudySection(BaseModel, extra="forbid"):
    """What is searched for."""

    config: Path = Field(description="the base config, relative to the study file")
    name: str = Field(
        "", pattern=r"^([A-Za-z0-9][\w.-]*)?$", description="of the study and its folder; default: as the file"
    )
    folder: Path = Field(Path("sweeps"), description="where folders of studies are, relative to the working directory")
    trials: int = Field(20, ge=1, description="how many trials")
    seeds: int = Field(1, ge=1, description="runs of each trial, with seeds counting up from that of the config")
    metric: Literal["best", "last"] = Field("last", description="the mean return of the last evaluation, or the best")
    direction: Literal["maximize", "minimize"] = Field("maximize", description="which values are better")
    set: list[str] = Field(default_factory=list, description="overrides of the base config, as after `--set`")

    @model_validator(mode="after")
    def _best_is_highest(self) -> StudySection:
        if self.metric == "best" and self.direction == "minimize":
            raise ValueError('metric = "best" is the highest mean return; with direction = "minimize" use "last"')
        return self


class Named(BaseModel, extra="allow"):
    """A sampler or pruner of Optuna; all further keys are arguments of its class."""

    use: str

    @property
    def arguments(self) -> dict[str, Any]:
        """The further keys."""
        return dict(self.model_extra or {})


def _kind(entry: Any) -> str:
    return "range" if isinstance(entry, dict | Range) else "choices"


Entry = Annotated[Annotated[Range, Tag("range")] | Annotated[list[Any], Tag("choices")], Discriminator(_kind)]


class StudyFile(BaseModel, extra="forbid"):
    """A study file."""

    study: StudySection
    space: dict[str, Entry] = Field(min_length=1)
    sampler: Named = Named(use="tpe")
    pruner: Named = Named(use="none")

    @field_validator("space", mode="before")
    @classmethod
    def _quoted_keys(cls, space: Any) -> Any:
        """Take `optimizer.lr = {...}`, which TOML reads as nested tables, for `"optimizer.lr" = {...}`."""
        return dict(_flattened(space)) if isinstance(space, dict) else space

    @property
    def place(self) -> Path:
        """The folder of the study."""
        return self.study.folder / self.study.name


def _flattened(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, dict) and not {"low", "high"} & set(value):
            found += _flattened(value, f"{prefix}{key}.")
        else:
            found.append((prefix + key, value))
    return found


def read_study(path: Path) -> StudyFile:
    """Read a study file.

    Raises:
        ConfigError: it cannot be read, is no TOML, or says something that does not fit; says all of it.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        file = StudyFile.model_validate(values)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"study file {str(path)!r} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except ValidationError as error:
        raise ConfigError(_report(path, error)) from None
    file.study.name = file.study.name or path.stem
    file.study.config = path.parent / file.study.config
    return file


def _report(path: Path, error: ValidationError) -> str:
    lines = [f"{_place(problem['loc'])}: {_words(problem)}" for problem in error.errors()]
    return "\n  ".join([f"{path}: the study file does not fit", *lines])


def _place(location: tuple[int | str, ...]) -> str:
    """Return where a problem is, without what tells a range from choices."""
    return ".".join(str(part) for index, part in enumerate(location) if (index, location[0]) != (2, "space"))


def _words(problem: Any) -> str:
    if problem["type"] == "extra_forbidden":
        return "unknown key"
    if problem["type"] == "list_type" and problem["loc"][0] == "space":
        return "must be a range such as { low = 1e-5, high = 1e-2, log = true }, or a list of choices"
    return str(problem["msg"]).removeprefix("Value error, ")
