"""Everything that is wrong with a config in one message: with its sections, and with the parts that they name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rlcore.config.problems import ConfigProblems
from rlcore.config.raw import RawConfig
from rlcore.config.sections import Config, InvalidConfig, validate
from rlcore.errors import ConfigError
from rlcore.run.build import build
from rlcore.run.problems import problems_of
from rlcore.run.process_state import choose_device


def validated(raw: RawConfig, enable: Iterable[str] = (), disable: Iterable[str] = ()) -> Config:
    """Return the validated config.

    Where a section does not fit, the others are tried out too, so that one message tells all.

    Raises:
        ConfigProblems: says everything that was found.
    """
    try:
        return validate(raw, enable, disable)
    except InvalidConfig as error:
        if error.rest is None or "env" in error.rest.missing():
            raise
        raise ConfigProblems(error.path, [*error.problems, *_found(error.rest)]) from None


def try_out(config: Config) -> None:
    """Build the parts of a config in memory, on the CPU whatever device it is for, and let them go.

    Raises:
        RlcoreError: one of them cannot be built, or there is no such device; `ConfigProblems` where there are several.
    """
    on_cpu = replace(config, run=config.run.model_copy(update={"device": "cpu"}))
    device: list[str] = []
    try:
        choose_device(config.run.device)
    except ConfigError as error:
        device.append(str(error))
    try:
        build(on_cpu, write=False).close()
    except Exception as error:
        if not device:
            raise
        raise ConfigProblems(config.raw.path, [*device, *problems_of(error)]) from error
    if device:
        raise ConfigProblems(config.raw.path, device)


def _found(rest: Config) -> list[str]:
    """Return what is wrong with the parts of the sections that fit."""
    try:
        try_out(rest)
    except Exception as error:
        return problems_of(error)
    return []
