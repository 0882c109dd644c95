"""What was saved of the policy of a run: the checkpoint that a user means, with the config that says what it is of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlcore.checkpoints.manifest import MANIFEST, CheckpointEntry, best, committed, read_manifest, scan
from rlcore.config.changes import entries_of
from rlcore.config.core import RunConfig
from rlcore.config.file import read
from rlcore.config.overrides import override
from rlcore.config.policies import AGENTS, SEVERAL
from rlcore.config.raw import ConfigFile, RawConfig
from rlcore.config.validation import checked
from rlcore.envs.spec_records import recorded_spec, spec_record
from rlcore.errors import ConfigError, NoCheckpointError, did_you_mean
from rlcore.plugins.known import lend
from rlcore.run.single_parts import open_backend
from rlcore.run_folder.folder import CHECKPOINTS, CONFIG_FILE, check_is_run
from rlcore.run_folder.origin import Origin, origin_in
from rlcore.types import EnvSpec


@dataclass(frozen=True)
class Saved:
    """What was saved of a policy.

    Attributes:
        path: where it was read.
        frames: training frames.
        at: how long it was trained, in words.
        states: component name to state.
        config: with which it was trained, resolved.
        env: what is recorded of its env, see `rlcore.envs.spec_record`; empty where nothing is.
        raw: the config as it was saved, which says whether its code may run.
    """

    path: Path
    frames: int
    states: Mapping[str, Any]
    config: Mapping[str, Any]
    env: Mapping[str, Any]
    raw: RawConfig
    at: str = ""

    @classmethod
    def of(
        cls,
        path: Path,
        frames: int,
        states: Mapping[str, Any],
        config: Mapping[str, Any],
        env: Mapping[str, Any],
        trusted: bool,
    ) -> Saved:
        """Return what a file holds beside its config; relative paths of the config refer to the folder of the file."""
        return cls(path, frames, states, config, env, _raw(config, path, trusted))

    @property
    def run(self) -> RunConfig:
        """The section [run] of the config.

        Raises:
            ConfigError: a key or a value does not fit.
        """
        problems: list[str] = []
        keys = self.config["run"]
        checked(RunConfig, keys, "run", "the core", problems)
        if problems:
            raise ConfigError("; ".join(problems))
        return RunConfig.model_validate(keys)

    def with_sections_of(self, folder: Path, sections: Collection[str]) -> Saved:
        """Return the same with sections as the config of a run folder has them, if it has them.

        Raises:
            ConfigError: the config of the folder cannot be read.
        """
        there = read(folder / CONFIG_FILE)
        config = {**self.config, **{name: there.values[name] for name in sections if name in there.values}}
        files = (*self.raw.files, *(replace(file, of_a_run=True) for file in there.files))
        return replace(self, config=config, raw=replace(self.raw, values=config, files=tuple(dict.fromkeys(files))))

    def changed(self, config: Mapping[str, Any], changes: Iterable[str] = ()) -> Saved:
        """Return the same with another config, in which `"section.key=value"` is set, as after `--set`.

        Raises:
            ConfigError: a change names no key, or no section that there is.
        """
        raw = replace(self.raw, values=deepcopy(dict(config)))
        for change in changes:
            override(raw, change)
        return replace(self, config=raw.values, raw=raw)


def read_saved(place: Path, of_best: bool, trusted: bool) -> Saved:
    """Read the checkpoint that a path means.

    Args:
        place: a run folder, its folder of checkpoints, or the folder of one checkpoint.
        of_best: the checkpoint with the best evaluation, not the latest.
        trusted: whether code may run that a config names which was not written here.

    Raises:
        ConfigError: there is nothing of that kind, its checkpoint is of another run, or a script saved it, without a
            config.
        StorageError: there is no checkpoint, or none that can be read.
    """
    checkpoints, only = _found(place)
    run = checkpoints.parent
    entry, states = _read(checkpoints, only, of_best)
    config = (origin_in(run, entry) if only is None else Origin.of(run, entry)).config
    if not {"run", "model"} <= config.keys():
        raise ConfigError(
            f"checkpoint {entry.path} does not say of which parts its model was made, as that of a script: load it "
            "with the script that saved it (Trainer.load_from_file)"
        )
    at = f"{entry.unit} {entry.reached:,}"
    raw = _raw(config, run / CONFIG_FILE, trusted)
    return Saved(entry.path, entry.frames, states, config, entry.manifest.get("env") or {}, raw, at)


def _raw(config: Mapping[str, Any], path: Path, trusted: bool) -> RawConfig:
    """Return a resolved config that was saved with a policy, as one that was read from a file."""
    return RawConfig(dict(config), path, files=(ConfigFile.of(path, config, of_a_run=True),), trusted=trusted)


def _found(place: Path) -> tuple[Path, CheckpointEntry | None]:
    """Return the folder of checkpoints, and the only one that is meant, if it is one."""
    if not place.exists():
        raise ConfigError(f"there is no run folder or checkpoint {str(place)!r}")
    if (place / MANIFEST).is_file():
        path = place.resolve()
        manifest = read_manifest(path)
        return path.parent, CheckpointEntry(path, manifest["progress"]["frames"], manifest)
    if (place / CHECKPOINTS).is_dir():
        return place / CHECKPOINTS, None
    if place.is_dir() and committed(place):
        return place.resolve(), None
    check_is_run(place)
    raise NoCheckpointError(f"run {str(place)!r} has no checkpoint yet: train it until it has saved one")


def _read(folder: Path, only: CheckpointEntry | None, of_best: bool) -> tuple[CheckpointEntry, dict[str, Any]]:
    """Read one checkpoint: the only one, or the best; else the latest that can be read, which says what it skips."""
    if only is not None and of_best:
        raise ConfigError(f"best chooses among the checkpoints of a run, and {str(only.path)!r} is one of them")
    entries = scan(folder).entries
    if not entries and only is None and not committed(folder):
        raise NoCheckpointError(f"run {str(folder.parent)!r} has no checkpoint yet: train it until it has saved one")
    entry = only or (best(entries) if of_best else None)
    if of_best and entry is None:
        raise NoCheckpointError(
            f"no checkpoint of run {str(folder.parent)!r} was evaluated, so none is the best: take the latest, or "
            "train with an [evaluator]"
        )
    name = (entry or entries[-1]).manifest["backend"] if entry or entries else None
    store = open_backend(name).store(folder)
    return (entry, store.load(entry)) if entry is not None else store.load_newest()


def models_of(saved: Saved) -> dict[str, dict[str, Any]]:
    """Return the keys of the model of each policy by its name; of a run with one policy by the empty name."""
    return {name: dict(table) for name, table in entries_of(saved.config, "model").items()}


def agents_of(saved: Saved) -> dict[str, list[str]]:
    """Return the names of the agents that each policy acts for; none of a run with one policy."""
    return {name: list(table[AGENTS]) for name, table in models_of(saved).items() if name}


def of_policy(saved: Saved, policy: str | None) -> Saved:
    """Return what was saved of one policy.

    Args:
        saved: of a run.
        policy: its name; None where the run has one policy.

    Raises:
        ConfigError: the run has several policies and none is named, or none of that name.
    """
    models = models_of(saved)
    if "" in models:
        if policy is not None:
            raise ConfigError(f"policy {policy!r}: {saved.path} is of a run with one policy; leave it out")
        return saved
    if policy not in models:
        asked = "" if policy is None else f", and none is called {policy!r}{did_you_mean(policy, models)}"
        raise ConfigError(
            f"{saved.path} is of a run with several policies, {', '.join(models)}{asked}: name one of them "
            "(rlcore.load_agent(..., policy=...), rlcore export --policy)"
        )
    table = {key: value for key, value in models[policy].items() if key != AGENTS}
    own = {name: state for name, state in saved.states.items() if not name.startswith("model.")}
    return replace(
        saved,
        config={**saved.config, "model": table},
        states={**own, "model": saved.states[f"model.{policy}"]},
        env=spec_record(_spec_of(saved, policy)),
    )


def _spec_of(saved: Saved, policy: str) -> EnvSpec:
    """Return what a policy knows of the env, before any transform."""
    spec = recorded_spec(saved.env)
    shares = lend("rlcore.run", "assigned", SEVERAL)(spec, agents_of(saved))
    own: EnvSpec = shares.spec(policy, spec)
    return own
