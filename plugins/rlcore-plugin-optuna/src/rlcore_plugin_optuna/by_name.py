"""Samplers and pruners of Optuna by the names that a study file gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import optuna

from rlcore.errors import ConfigError, did_you_mean
from rlcore_plugin_optuna.study_file import Named, StudyFile

# the trials of a quasi-random sequence share its seed; every other sampler gets one of its own for each trial
_ONE_SEQUENCE: Final = "qmc"
# bases, and those that are made of another one
_NOT_BY_NAME: Final = ("Base", "BaseGA", "PartialFixed", "Patient", "Nop")


def _by_name(module: Any, suffix: str) -> dict[str, type]:
    """Return the classes of a module of Optuna by short name: `tpe` for `TPESampler`."""
    classes = {name.removesuffix(suffix): getattr(module, name) for name in module.__all__ if name.endswith(suffix)}
    return {_short(name): found for name, found in classes.items() if name not in _NOT_BY_NAME}


def _short(name: str) -> str:
    """Return a name of a class as a config writes it: `successive-halving` for `SuccessiveHalving`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


SAMPLERS: Final = _by_name(optuna.samplers, "Sampler")
PRUNERS: Final = {"none": optuna.pruners.NopPruner, **_by_name(optuna.pruners, "Pruner")}


def sampler(file: StudyFile, trial: int) -> optuna.samplers.BaseSampler:
    """Return the sampler for a trial.

    A study keeps no state of its sampler. With a seed that depends on the trial alone, a study that is resumed chooses
    what it would have chosen.

    Raises:
        ConfigError: there is no such sampler, or it does not take these arguments.
    """
    arguments = {"seed": 0, **file.sampler.arguments}
    if _short_name(file.sampler) != _ONE_SEQUENCE:
        arguments["seed"] = (int(arguments["seed"]) * 1_000_003 + trial) % 2**32
    if _short_name(file.sampler) == "grid":
        arguments["search_space"] = _grid(file)
    return _made(SAMPLERS, "sampler", file.sampler, arguments)  # type: ignore[no-any-return]


def pruner(file: StudyFile) -> optuna.pruners.BasePruner:
    """Return the pruner.

    Raises:
        ConfigError: there is no such pruner, or it does not take these arguments.
    """
    return _made(PRUNERS, "pruner", file.pruner, file.pruner.arguments)  # type: ignore[no-any-return]


def _short_name(named: Named) -> str:
    return named.use.lower()


def _made(classes: Mapping[str, type], kind: str, named: Named, arguments: Mapping[str, Any]) -> Any:
    name = _short_name(named)
    if name not in classes:
        raise ConfigError(
            f"{kind}.use = {named.use!r}: Optuna has no such {kind}{did_you_mean(name, classes)}; there are: "
            f"{', '.join(sorted(classes))}"
        )
    try:
        return classes[name](**arguments)
    except (TypeError, ValueError, ImportError) as error:
        raise ConfigError(f"[{kind}] use = {named.use!r}: {error}") from error


def _grid(file: StudyFile) -> dict[str, list[Any]]:
    ranges = [key for key, entry in file.space.items() if not isinstance(entry, list)]
    if ranges:
        raise ConfigError(f'sampler.use = "grid" needs a list of choices for {", ".join(ranges)}')
    from rlcore_plugin_optuna.space import distributions

    return {key: list(distribution.choices) for key, distribution in distributions(file).items()}  # type: ignore[union-attr]
