"""Everything that is wrong with a config in one message: with its sections, and with the parts that they name."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from rlcore.config.problems import ConfigProblems, problems_of
from rlcore.config.raw import RawConfig
from rlcore.config.sections import Config, InvalidConfig, validate
from rlcore.run.build import build


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
    """Build the parts of a config in memory, whatever device it is for, and let them go.

    Raises:
        RlcoreError: one of them cannot be built; `ConfigProblems` where there are several.
    """
    run = config.run.model_copy(update={"device": "cpu"})
    log, level = logging.getLogger("rlcore"), logging.getLogger("rlcore").level
    log.setLevel(logging.WARNING)
    try:
        build(replace(config, run=run), write=False).close()
    finally:
        log.setLevel(level)


def _found(rest: Config) -> list[str]:
    """Return what is wrong with the parts of the sections that fit."""
    try:
        try_out(rest)
    except Exception as error:
        return problems_of(error)
    return []
