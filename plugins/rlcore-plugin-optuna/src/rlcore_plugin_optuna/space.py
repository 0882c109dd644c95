"""The search space: its distributions for Optuna, the overrides that a choice stands for, and what no config takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import tomli_w
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import rlcore
from rlcore.errors import ConfigError, RlcoreError
from rlcore_plugin_optuna.study_file import Range, StudyFile

Distribution: TypeAlias = FloatDistribution | IntDistribution | CategoricalDistribution

# the study names the runs and counts their seeds, and a value must mean the same in every trial
_NOT_SEARCHED: Final = (
    "run.name",
    "run.folder",
    "run.seed",
    "run.total_frames",
    "run.total_updates",
    "evaluator",
    "plugins",
    "logger",
)


def distributions(file: StudyFile) -> dict[str, Distribution]:
    """Return the distribution of each key of the space."""
    return {key: _distribution(entry) for key, entry in file.space.items()}


def _distribution(entry: Range | list[Any]) -> Distribution:
    if isinstance(entry, list):
        return CategoricalDistribution([_category(choice) for choice in entry])
    if isinstance(entry.low, int) and isinstance(entry.high, int):
        return IntDistribution(entry.low, entry.high, log=entry.log, step=int(entry.step or 1))
    return FloatDistribution(float(entry.low), float(entry.high), log=entry.log, step=entry.step)


def _category(choice: Any) -> Any:
    """Return a choice as Optuna stores it: a list or table as the TOML that it is."""
    return _toml(choice) if isinstance(choice, list | dict) else choice


def overrides(file: StudyFile, chosen: Mapping[str, Any]) -> list[str]:
    """Return `section.key=value` for each value that was chosen, in the order of the space."""
    return [f"{key}={_text(file.space[key], chosen[key])}" for key in file.space]


def _text(entry: Range | list[Any], value: Any) -> str:
    is_toml = isinstance(entry, list) and value not in entry
    return str(value) if is_toml else _toml(value)


def _toml(value: Any) -> str:
    """Return a value as TOML, on one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml(key)} = {_toml(entry)}' for key, entry in value.items())}}}"
    return tomli_w.dumps({"value": value}).partition("=")[2].strip()


def check(file: StudyFile, trust: bool = False) -> None:
    """See that the base config takes both ends of every range, and every choice.

    Args:
        file: of the study.
        trust: run the code that the base config names, and remember to, though it was not written here.

    Raises:
        ConfigError: it does not; says all that does not fit.
    """
    base = file.study.config
    rlcore.load_config(base, file.study.set, trust=trust)
    problems = [problem for key in file.space for problem in _problems_of(file, key)]
    if problems:
        raise ConfigError("\n  ".join([f"{base} does not take what [space] says:", *problems]))


def _problems_of(file: StudyFile, key: str) -> Iterator[str]:
    if any(key == name or key.startswith(f"{name}.") for name in _NOT_SEARCHED):
        yield f"{key}: belongs to the study, and is the same in every trial"
        return
    entry = file.space[key]
    if isinstance(entry, list) and len(entry) < 2:
        yield f"{key}: name two choices at least"
    for value in entry if isinstance(entry, list) else (entry.low, entry.high):
        text = f"{key}={_toml(value)}"
        try:
            rlcore.load_config(file.study.config, [*file.study.set, text])
        except RlcoreError as error:
            yield f"{text}: {str(error).removeprefix(f'{file.study.config}: ')}"
