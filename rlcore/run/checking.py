"""Everything that is wrong with a config in one message: with its sections, and with the parts that they name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from rlcore.config.file import read
from rlcore.config.observers import add_observers
from rlcore.config.problems import ConfigProblems
from rlcore.config.raw import RawConfig
from rlcore.config.sections import Config, InvalidConfig, validate
from rlcore.errors import ConfigError
from rlcore.run.build import build
from rlcore.run.problems import problems_of
from rlcore.run.process_state import choose_device
from rlcore.run.resume import check_unchanged_since_latest
from rlcore.run_folder.folder import read_config


def checked_config(
    path: Path,
    overrides: Iterable[str] = (),
    enable: Iterable[str] = (),
    disable: Collection[str] = (),
    trust: bool = False,
    run: Path | None = None,
) -> Config:
    """Return the config with which `rlcore train` would begin a run, or go on with one.

    Args:
        path: a TOML file.
        overrides: `"section.key=value"`, as after `--set`.
        enable: further plugins to import.
        disable: plugins that must not be imported.
        trust: run the code that the config names which was not written here, and remember to.
        run: folder of the run that goes on; None for a new one.

    Raises:
        ConfigError: says everything that is wrong with it; or it differs from that of the run.
    """
    raw = read(path, overrides, trust=trust)
    add_observers(raw, disable, None if run is None else read_config(run))
    config = validated(raw, enable, disable)
    if run is not None:
        check_unchanged_since_latest(config, run)
    return config


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
