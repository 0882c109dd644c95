"""A training from a preset: its config, and the run that comes of it."""

from __future__ import annotations

import itertools
import logging
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

from gymnasium.envs.registration import EnvSpec

import rlcore
from rlcore.config import RawConfig, leave_out_shown, validate
from rlcore.errors import ArgumentTypeError, ConfigError, MissingPluginError, describe
from rlcore.plugins import lend
from rlcore.process import stop_on_signal
from rlcore.run import Asked, Config, Ending, StoppedAtStart, command_hooks, validated
from rlcore.run_folder import CONFIG_FILE
from rlcore_plugin_presets.config_text import as_raw, checked_name, filled, remedied, run_name, write_new
from rlcore_plugin_presets.fitting import chosen, lacking_data, remedies
from rlcore_plugin_presets.keys import Place, placed, split
from rlcore_plugin_presets.presets import Preset, named
from rlcore_plugin_presets.trained import TrainedRun

log = logging.getLogger("rlcore")  # the log that a training shows


class Training:
    """A run that is not begun: a preset for an environment, with keys of one's own.

    Args:
        preset: an algorithm, such as `"ppo"`, or the name of one of its presets.
        env: id of the environment; None for a preset whose environment has none.
        name: of the run; default: algorithm and environment, with a number where there is such a run already.
        overrides: values by the full path of their keys, such as `{"loss.gamma": 0.98}`.
        keys: values by the name of their keys alone, where only one section has it, such as `lr=1e-3`; a key of
            `[run]` comes first (`seed=3`), and `gamma` is that of every section.

    Raises:
        ConfigError: a key that there is not, or that several sections have; or the environment cannot be made.
        PluginError: there is no such preset; says how to install it.
    """

    def __init__(
        self,
        preset: str,
        env: str | None = None,
        *,
        name: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        **keys: Any,
    ) -> None:
        self._named, self._given = preset, {**keys, **({"overrides": dict(overrides)} if overrides else {})}
        self._env = _env_id(env)
        self.preset: Preset = chosen(named(preset), self._env)
        self._name = None if name is None else checked_name(name)
        self._keys = self._resolved({**keys, **(overrides or {})})
        self._run: TrainedRun | None = None
        self._begun: str | None = None  # the name of a run, also of one that failed
        self._remedies: list[Mapping[str, Any]] = []
        self._remedies = remedies(self.config_text(), lambda text: lacking_data(self._raw(text)))

    def config_text(self, frames: int | None = None, name: str | None = None) -> str:
        """Return the config, in TOML with comments; `rlcore train` of it does the same as `train`.

        Args:
            frames: to train for, or updates where the preset counts those; default: those of the preset.
            name: of the run.
        """
        keys = dict(self._keys)
        if frames is not None:
            keys["run", f"total_{self._unit}"] = frames
        text = filled(self.preset, name or self._name or self._default_name, self._env, keys)
        return reduce(remedied, self._remedies, text)

    def write_config(self, path: str | Path, frames: int | None = None) -> Path:
        """Write the config into a new file, and return its path.

        Raises:
            ConfigError: the file exists, or cannot be written.
        """
        write_new(Path(path), self.config_text(frames))
        return Path(path)

    def train(
        self, frames: int | None = None, *, resume: bool = False, quiet: bool = False, hooks: Iterable[Any] = ()
    ) -> TrainedRun:
        """Train, and return the run; lines on standard error say how far it is, and in a notebook a picture.

        Ctrl-C, or the interrupt of a notebook, saves the state. It ends a script, and gives back the run so far in a
        notebook and where one types.

        Args:
            frames: environment frames in total, or updates where the preset counts those, as one that learns from a
                dataset does; default: those of the preset.
            resume: go on with the run of that name, or with the one that this object trained.
            quiet: without a bar, a table or lines.
            hooks: instances, after those of the config.

        Raises:
            ConfigError: the run is trained already, or there is none to resume.
            KeyboardInterrupt: Ctrl-C was pressed in a script, and the state is saved.
        """
        frames = self._checked_frames(frames)
        name = self._begun = self._name_to_resume(frames) if resume else self._name_to_begin()
        raw = self._raw(self.config_text(frames, name))
        display = None if quiet else _notebook_display()
        shown_elsewhere = quiet or display is not None
        if shown_elsewhere:
            leave_out_shown(raw)
        config = validated(raw)
        with _saying(shown_elsewhere):
            hooks = [*hooks, *([] if display is None else [display])]
            self._run, stopped_by = _trained(config, resume, shown_elsewhere, hooks)
            log.info("%r", self._run)
            total = "" if frames is None else f"{frames}, "
            how = f"go on with {self._spelled(name)}.train({total}resume=True)"
            if stopped_by == signal.SIGINT and hasattr(sys, "ps1"):  # somebody types, and wants the run
                say = log.info if display is None else display.say
                say(f"stopped; {how}")
            elif stopped_by == signal.SIGINT:
                raise KeyboardInterrupt(f"{self._run}; {how}")
            elif stopped_by is not None:
                raise SystemExit(128 + stopped_by)
        return self._run

    def __repr__(self) -> str:
        state = "not trained" if self._run is None else repr(self._run)
        return f"<{self._spelled(self._name)}, preset {self.preset.name}: {state}>"

    def _spelled(self, name: str | None) -> str:
        """Return the call that makes this training, with a name of its run."""
        kind = type(self).__name__
        given = {**self._given, **({} if name is None else {"name": name})}
        arguments = [repr(self._env)] if self._env is not None else []
        if type(self) is Training:
            kind, arguments = "preset", [repr(self._named), *arguments]
        return f"rlcore.{kind}({', '.join([*arguments, *(f'{key}={value!r}' for key, value in given.items())])})"

    @property
    def _unit(self) -> str:
        """What the length of the run is counted in."""
        return "updates" if "total_updates" in self.preset.values["run"] else "frames"

    @property
    def _default_name(self) -> str:
        return run_name(self.preset, self._env)

    def _resolved(self, keys: Mapping[str, Any]) -> dict[Place, Any]:
        """Return the values by place; those of full paths come first, since they may change what a section uses."""
        full, alone = split(keys)
        if not alone:
            return full
        config = self._checked(filled(self.preset, self._name or self._default_name, self._env, full))
        return {**full, **placed(alone, config)}

    def _raw(self, text: str) -> RawConfig:
        return as_raw(text, Path(f"{self._name or self._default_name}.toml"))

    def _checked(self, text: str) -> Config:
        return validate(self._raw(text))

    def _place(self, name: str) -> Path:
        return self._checked(self.config_text(name=name)).run.place

    def _checked_frames(self, frames: int | None) -> int | None:
        if frames is not None and (isinstance(frames, bool) or not isinstance(frames, int) or frames <= 0):
            raise ArgumentTypeError(f"train({frames!r}): {self._unit} must be a whole number above 0")
        return frames

    def _name_to_begin(self) -> str:
        """Return the name of a new run: the given one, or the first that is free."""
        if self._run is not None:
            length = f"{self._run.length:,} {self._unit}"
            go_on = f"train(MORE_{self._unit.upper()}_IN_TOTAL, resume=True)"
            how = f"is trained, for {length}; go on with {go_on}, or make a new object for another run"
            if self._run.stop_reason:
                how = f"was stopped at {length}; resume=True goes on with it, and a new object begins another run"
            raise ConfigError(f"{str(self._run.folder)!r} {how}")
        if self._name is not None:
            if (place := self._place(self._name)).exists():
                raise ConfigError(
                    f"the run {str(place)!r} exists already; train(..., resume=True) goes on with it, another name= "
                    "begins another one, and without name= each run gets a free one"
                )
            return self._name
        numbered = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
        return next(name for end in numbered if not self._place(name := f"{self._default_name}{end}").exists())

    def _name_to_resume(self, frames: int | None) -> str:
        """Return the name of the run that there is."""
        if self._run is not None:
            if frames is not None and frames <= self._run.length:
                raise ConfigError(
                    f"train({frames}, resume=True): the run has {self._run.length:,} {self._unit} already"
                )
            return self._run.folder.name
        name = self._begun or self._name or self._default_name
        if not (self._place(name) / CONFIG_FILE).is_file():
            raise ConfigError(f"resume=True: there is no run {str(self._place(name))!r} to resume")
        return name


def _env_id(env: Any) -> str | None:
    """Return the id of an environment.

    Raises:
        ArgumentTypeError: it is none, but an environment or what makes one.
    """
    if env is None or isinstance(env, str):
        return env
    if isinstance(env, EnvSpec):
        return env.id
    raise ArgumentTypeError(
        f"env = {env!r} must be an id, so that the run can be resumed and repeated from its config: register it with "
        'gymnasium.register("my/Env-v0", entry_point=...) in a module, and name it as "my_module:my/Env-v0"'
    )


@contextmanager
def _saying(quiet: bool) -> Iterator[None]:
    """Let the log of rlcore say how far a run is, on standard error where the program has no place for it."""
    if quiet or log.isEnabledFor(logging.INFO):
        yield
        return
    level, handler = log.level, None if log.hasHandlers() else logging.StreamHandler(sys.stderr)
    log.setLevel(logging.INFO)
    if handler is not None:
        log.addHandler(handler)
    try:
        yield
    finally:
        log.setLevel(level)
        if handler is not None:
            log.removeHandler(handler)


def _notebook_display() -> Any:
    """Return what shows a run in a notebook; None elsewhere, or without its plugin."""
    if "ipykernel" not in sys.modules:
        return None
    try:
        return lend("rlcore_plugin_presets", "notebook_display")()
    except MissingPluginError:
        return None


def _trained(config: Config, resume: bool, quiet: bool, hooks: Iterable[Any]) -> tuple[TrainedRun, int | None]:
    """Train a run with its status on disk and signals handled as `rlcore train` does.

    Returns:
        What it reached, and the number of the signal that stopped it before its end.

    Raises:
        KeyboardInterrupt: Ctrl-C came before the run was built.
        SystemExit: another signal did.
    """
    ending = Ending(config.run.place)
    asked = Asked(config.raw, config.run.place, config.run.clock, quiet=quiet)
    hooks = [*command_hooks(asked, config, ending.status), *hooks]
    with stop_on_signal(ending.request_stop, saving=ending.saving, give_up=ending.give_up) as received:
        try:
            run = rlcore.build(config, resume=resume, hooks=hooks, heart=ending.heart)
            ending.begin(run)
            run.trainer.train()
        except StoppedAtStart:
            ending.stopped_at_start()
            raise (KeyboardInterrupt if received[0] == signal.SIGINT else SystemExit(128 + received[0])) from None
        except BaseException as error:
            ending.failed(describe(error))
            raise
        ending.stopped()
    return TrainedRun.of(run), received[0] if received and not ending.done else None
