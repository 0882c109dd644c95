"""The bench file: tasks, methods and seeds, as a TOML file says."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from rlcore.errors import ConfigError, did_you_mean

_KINDS: Final = ("config", "preset", "command", "source")
# keys that mean something beside one of these alone
_BELONGS: Final = {
    "env": "preset",
    **dict.fromkeys(("python", "result", "files", "packages"), "command"),
    **dict.fromkeys(("values", "mean", "std", "runs"), "source"),
}
_NAME: Final = r"^[A-Za-z0-9][\w.+-]*$"


class Method(BaseModel, extra="forbid", allow_inf_nan=False):
    """One way to learn a task: a config of rlcore, a preset, the command of a peer, or values that were published."""

    title: str = Field("", description="on the page; default: its name")
    seeds: list[int] | None = Field(None, description="default: those of the task")
    config: Path | None = Field(None, description="a config of rlcore, relative to the bench file")
    preset: str | None = Field(None, description="a preset of `rlcore init`")
    env: str | None = Field(None, description="the env of the preset; default: its own")
    set: list[str] = Field(default_factory=list, description="overrides of the config, as after `--set`")
    command: list[str] | None = Field(
        None, description="a script of a peer, relative to the bench file, and its arguments"
    )
    python: str = Field("", description="which interpreter of `--python NAME=PATH` runs the command; default: rlcore's")
    result: str = Field("mean", description="the key of the score in what the command prints")
    files: list[Path] = Field(default_factory=list, description="further files that the command is made of")
    packages: list[str] = Field(default_factory=list, description="distributions whose versions are noted")
    source: str | None = Field(None, description="where the published values are from")
    values: list[float] = Field(default_factory=list, description="published scores, one per seed")
    mean: float | None = Field(None, description="published mean, where the values of the seeds are not known")
    std: float | None = Field(None, ge=0, description="published standard deviation over the seeds")
    runs: int | None = Field(None, ge=1, description="how many seeds the published mean is of")

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Method:
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(kinds) > 1:
            raise ValueError(f"{' and '.join(kinds)} exclude each other")
        return self

    @property
    def kind(self) -> Literal["rlcore", "peer", "published", ""]:
        """What it is; nothing where it is not complete."""
        if self.config is not None or self.preset is not None:
            return "rlcore"
        if self.command is not None:
            return "peer"
        return "" if self.source is None else "published"

    @property
    def is_complete(self) -> bool:
        """Whether a task can have it as it is; another one is what the methods of tasks add to."""
        return bool(self.kind) and (self.kind != "published" or bool(self.values) or self.mean is not None)


class Task(BaseModel, extra="forbid", allow_inf_nan=False):
    """What is learnt, and how it is scored."""

    title: str = Field("", description="on the page; default: its name")
    text: str = Field("", description="below the title")
    score: Literal["evaluation", "training"] = Field("evaluation", description="evaluations, or episodes of training")
    last: int | None = Field(None, ge=1, description="how many are averaged; default: 1 evaluation, 100 episodes")
    threshold: float | None = Field(None, description="a return; the page says when it was reached")
    seeds: list[int] | None = Field(None, description="default: those of `[bench]`")
    set: list[str] = Field(default_factory=list, description="overrides of the configs of all its methods")
    data: Path | None = Field(None, description="a dataset that is learnt from, relative to the bench file")
    methods: list[str] | None = Field(None, description="which of the methods of all tasks it has; default: all")
    method: dict[str, Method] = Field(default_factory=dict, description="methods of this task, or changes of them")

    @property
    def averaged(self) -> int:
        """How many evaluations or episodes the score is the mean of."""
        return self.last or (1 if self.score == "evaluation" else 100)


class BenchSection(BaseModel, extra="forbid"):
    """What holds for all tasks."""

    title: str = Field("", description="of the page; default: name of the file")
    text: str = Field("", description="below the title of the page")
    seeds: list[int] = Field([1, 2, 3], min_length=1, description="of every task")
    rows: Path = Field(Path("rows"), description="folder of the finished rows, relative to the bench file")
    runs: Path = Field(Path("runs/bench"), description="folder of the run folders, relative to the working directory")


class BenchFile(BaseModel, extra="forbid"):
    """A bench file.

    Attributes:
        path: of the file.
    """

    bench: BenchSection = Field(default_factory=lambda: BenchSection.model_validate({}))
    task: dict[str, Task] = Field(min_length=1)
    method: dict[str, Method] = Field(default_factory=dict)
    path: Path = Field(Path("bench.toml"), exclude=True)

    @field_validator("task", "method")
    @classmethod
    def _names_are_folders(cls, tables: dict[str, Any]) -> dict[str, Any]:
        import re

        for name in tables:
            if not re.fullmatch(_NAME, name):
                raise ValueError(f"the name {name!r} is to be that of a folder: letters, digits, '.', '_', '+' and '-'")
        return tables

    @property
    def folder(self) -> Path:
        """The folder that its paths are relative to."""
        return self.path.parent

    def methods_of(self, name: str) -> Iterator[tuple[str, Method]]:
        """Yield the methods of a task, those of all tasks first."""
        task = self.task[name]
        complete = [method for method, how in self.method.items() if how.is_complete]
        shared = complete if task.methods is None else task.methods
        for method in dict.fromkeys([*shared, *task.method]):
            yield method, _merged(self.method.get(method), task, task.method.get(method))

    def seeds_of(self, task: str, method: Method) -> list[int]:
        """Return the seeds of a method of a task."""
        return method.seeds or self.task[task].seeds or self.bench.seeds


def _merged(shared: Method | None, task: Task, own: Method | None) -> Method:
    """Return a method as a task has it: its own keys over the shared ones, the overrides one after the other."""
    parts = [part for part in (shared, own) if part is not None]
    values: dict[str, Any] = {}
    for part in parts:
        values |= part.model_dump(exclude_unset=True)
    values["set"] = [*([] if shared is None else shared.set), *task.set, *([] if own is None else own.set)]
    return Method.model_validate(values)


def read_bench(path: Path) -> BenchFile:
    """Read a bench file.

    Raises:
        ConfigError: it cannot be read, is no TOML, or says something that does not fit; says all of it.
    """
    try:
        file = BenchFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"bench file {str(path)!r} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, problem['loc']))}: {_words(problem)}" for problem in error.errors()]
        raise ConfigError("\n  ".join([f"{path}: the bench file does not fit", *problems])) from None
    file.path = path
    file.bench.title = file.bench.title or path.stem
    problems = list(_problems(file))
    if problems:
        raise ConfigError("\n  ".join([f"{path}: the bench file does not fit", *problems]))
    return file


def _words(problem: Any) -> str:
    unknown = problem["type"] == "extra_forbidden"
    return "unknown key" if unknown else str(problem["msg"]).removeprefix("Value error, ")


def _problems(file: BenchFile) -> Iterator[str]:
    """Yield what does not fit between the tables of a file."""
    for name, task in file.task.items():
        for method in task.methods or ():
            if method not in file.method:
                known = did_you_mean(method, file.method)
                yield f"task.{name}.methods: there is no [method.{method}]{known}"
        try:
            methods = dict(file.methods_of(name))
        except ValidationError as error:
            yield f"task.{name}.method: {_words(error.errors()[0])}"
            continue
        if not methods:
            yield f"task.{name}: has no method; add [task.{name}.method.NAME]"
        for method, merged in methods.items():
            yield from (f"task.{name}.method.{method}: {text}" for text in _problems_of(merged))


def _problems_of(method: Method) -> Iterator[str]:
    if not method.kind:
        yield f"has none of {', '.join(_KINDS)}; name one"
    if method.kind == "published" and not method.values and method.mean is None:
        yield "source: has neither values nor a mean"
    if method.kind == "published" and method.values and method.mean is not None:
        yield "mean: leave it out, as it is that of the values"
    for key in sorted(method.model_fields_set & {*_BELONGS}):
        if getattr(method, _BELONGS[key]) is None and method.kind:
            yield f"{key}: belongs to a method with `{_BELONGS[key]}`"
    if method.command is not None and not method.command:
        yield "command: is empty"
