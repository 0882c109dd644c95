"""Resume a run: read its checkpoint, compare its config with the one given, restore the parts, and report."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from rlcore.checkpoints.manifest import CheckpointEntry
from rlcore.config.changes import changes, check_unchanged, entries_of, hooks_among, recorded
from rlcore.config.sections import Config
from rlcore.errors import StorageError
from rlcore.plugins.component import COMPONENT_SECTIONS
from rlcore.run.asked import ResumeOptions
from rlcore.run.ready import Run
from rlcore.run_folder.folder import CHECKPOINTS
from rlcore.run_folder.next_config import announce, settle
from rlcore.run_folder.origin import Origin, latest_checkpoint
from rlcore.run_folder.run_id import read_id, write_id
from rlcore.state.exactness import changed_owners, check_owners, outside
from rlcore.state.fitting import with_hyperparameters
from rlcore.state.memory import PIECE_BYTES, bytes_of, in_shared_file, is_plain
from rlcore.state.ranks import of_each_rank, states_of_rank
from rlcore.state.restoring import Restored
from rlcore.state.snapshot import Snapshot
from rlcore.types import Checkpointer, Stateful, defines
from rlcore.types.optional import offers

log = logging.getLogger(__name__)


def check_unchanged_since_latest(config: Config, folder: Path) -> None:
    """Refuse, before anything is built, to go on with another config or from a checkpoint of another run.

    Raises:
        ConfigError: names every key that differs.
    """
    _check(config, folder, latest_checkpoint(folder), config.hooks_that_may_watch())


def go_on(run: Run, folder: Path, options: ResumeOptions) -> list[Restored]:
    """Restore the latest checkpoint; a run that was killed before its first starts over.

    The config becomes that of the folder once the resume has begun. Where it differs, a checkpoint is saved first, so
    that what was accepted lasts.

    Raises:
        ConfigError: the checkpoint is of another config or run, and that was not accepted.
        StorageError: there is no checkpoint that can be loaded, or it does not fit.
    """
    parts = run.trainer.parts
    assert parts.store is not None
    parts.begun = partial(_settle, run, folder)
    parts.store.collect_leftovers()
    if parts.store.is_empty():
        log.error("%s has no checkpoint yet; the run starts over", parts.store.folder)
        parts.evaluations.begin_anew()
        for writer in run.trainer.metrics.writers:
            writer.begin_anew()
        return []
    in_place = _tensors_in_files(run) if defines(run.backend.checkpointer, Checkpointer.load_into) else {}
    entry, states = parts.store.load_newest(in_place)
    states = states_of_rank(states, 0)
    watching = hooks_among(parts.provenance.observers)
    if not options.accept_changes:
        _check(run.config, folder, entry, watching)
        check_owners(entry.manifest["owners"], parts.provenance.owners)
    origin, now = Origin.of(folder, entry), recorded(run.config.resolved())
    differences = _changes(run.config, origin, watching)
    options = _with_new_episodes(options, run, origin.config, now)
    report = _restore(run, entry, states, origin, differences, options)
    for writer in run.trainer.metrics.writers:
        if f"logger.{writer.name}" in options.fresh:  # what it wrote after the checkpoint would else stand twice
            writer.begin_anew()
    asked_for = [
        *([origin.foreign(parts.provenance.run_id)] if origin.foreign(parts.provenance.run_id) else []),
        *(f"[config] {change}" for change in differences),
        *changed_owners(entry.manifest["owners"], parts.provenance.owners),
        *_another_horizon(origin.config, now),
        *(f"{name} was dropped at {entry.place}" for name in options.drop),
        *(f"{line.name} started over at {entry.place}" for line in report if _asked_for(line, options)),
    ]
    _note(run, folder, entry, asked_for)
    return report


def go_on_beside(run: Run, folder: Path, options: ResumeOptions) -> list[Restored]:
    """Restore what a rank other than the first has of the latest checkpoint, from which the first goes on too.

    What is wrong with it, the first finds out and says.
    """
    store, rank = run.backend.store(folder / CHECKPOINTS), run.trainer.parts.group.rank
    if store.is_empty():
        return []
    entry, states = store.load_newest()
    origin, now = Origin.of(folder, entry), recorded(run.config.resolved())
    differences = _changes(run.config, origin, hooks_among(run.trainer.parts.provenance.observers))
    options = _with_new_episodes(options, run, origin.config, now)
    here = run.trainer.parts.stateful
    states = {name: state for name, state in states_of_rank(states, rank).items() if name in here}
    new = [name for name, part in here.items() if of_each_rank(name) and name not in states and offers(part, Stateful)]
    options = replace(options, fresh=(*options.fresh, *new))  # a run with fewer ranks had none of this one
    return _restore(run, entry, states, origin, differences, options)


def go_on_from(run: Run, kept: Snapshot) -> None:
    """Go on from a state that was kept in memory since the latest checkpoint."""
    parts = run.trainer.parts
    run.trainer.load_state_dict(kept.states())
    if run.trainer.saver is None or parts.store is None:
        return
    parts.store.collect_leftovers()
    newest = parts.store.entries()[-1]
    run.trainer.saver.saved_at, run.trainer.saver.last = newest.reached, newest.path
    parts.provenance = parts.provenance.with_reasons(newest.manifest["inexact"])


def _check(config: Config, folder: Path, entry: CheckpointEntry | None, watching: Iterable[str]) -> None:
    origin = Origin.of(folder, entry)
    differences = _changes(config, origin, watching) if origin.config else []
    check_unchanged(differences, origin.foreign(read_id(folder)))


def _changes(config: Config, origin: Origin, watching: Iterable[str]) -> list[str]:
    watched = {*hooks_among(origin.observers), *watching}
    return changes(origin.config, recorded(config.resolved()), config.free_keys(), watched, config.default_keys())


def _with_new_episodes(
    options: ResumeOptions, run: Run, saved: Mapping[str, Any], now: Mapping[str, Any]
) -> ResumeOptions:
    """Return the options with a fresh collector where the envs are others: the running episodes are not theirs.

    What an env held would else be put back into one that was built with other numbers, and count instead of them.
    """
    begins = "collector" in options.fresh or not offers(run.trainer.parts.stateful.get("collector"), Stateful)
    if begins or not saved:
        return options
    of_envs = [
        f"[{section}]"
        for section in ("env", "ranks")
        # of a key that an earlier rlcore did not have, the default is what the envs of the run had
        if changes(
            {section: saved.get(section)},
            {section: now.get(section)},
            run.config.free_keys(),
            default=run.config.default_keys(),
        )
    ]
    if not of_envs:
        return options
    log.warning("%s differs from that of the run, so new episodes begin", " and ".join(of_envs))
    return replace(options, fresh=(*options.fresh, "collector"))


def _restore(
    run: Run,
    entry: CheckpointEntry,
    states: dict[str, Any],
    origin: Origin,
    differences: list[str],
    options: ResumeOptions,
) -> list[Restored]:
    """Give every part its state; where the config differs, say in an error what does."""
    now = recorded(run.config.resolved())
    unusable = None
    if differences:
        unusable = {name: reason for name, reason in _unusable(origin.config, now) if name not in options.fresh}
        states = {**states, **_with_hyperparameters(run, states, origin.config, now)}
    try:
        return run.trainer.load_state_dict(
            states,
            _version_notes(run, entry.manifest),
            owners=entry.manifest["owners"],
            drop=options.drop,
            fresh=options.fresh,
            observers=origin.observers,
            unusable=unusable,
        )
    except StorageError as error:
        if differences:
            listed = "".join(f"\n  {change}" for change in differences)
            raise StorageError(f"{error}\nthe config differs from that of the run:{listed}") from error
        raise


def _unusable(saved: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield each part whose state is of something else, with the reason."""
    for section, (kind, _) in COMPONENT_SECTIONS.items():
        there = entries_of(saved, section)
        for name, entry in entries_of(now, section).items():
            old, new = there.get(name, {}).get("use"), entry.get("use")
            if old is not None and old != new:
                yield f"{kind}.{name}" if name else kind, f"it is {new!r} here, {old!r} in the checkpoint"


def _with_hyperparameters(
    run: Run, states: Mapping[str, Any], saved: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the states of the optimizers whose sections differ, with the numbers that the config says.

    Where neither an optimizer nor a scheduler differs, the numbers of the checkpoint stay: a hook may have set them.
    """
    there, here = (entries_of(config, "optimizer") for config in (saved, now))
    schedules_differ = saved.get("scheduler") != now.get("scheduler")
    changed = {}
    for name, entry in here.items():
        state = states.get(f"optimizer.{name}")
        optimizer = run.trainer.parts.stateful.get(f"optimizer.{name}")
        if isinstance(optimizer, torch.optim.Optimizer) and state and (schedules_differ or entry != there.get(name)):
            changed[f"optimizer.{name}"] = with_hyperparameters(optimizer, state)
    return changed


def _asked_for(line: Restored, options: ResumeOptions) -> bool:
    return line.outcome == "starts over" and (line.name in options.fresh or bool(line.since))


def _note(run: Run, folder: Path, entry: CheckpointEntry, asked_for: list[str]) -> None:
    """Say why the run is not exact, if so; where somebody asked for it, have that saved at once."""
    parts = run.trainer.parts
    if asked_for:
        announce(folder, run.config.resolved())
        assert run.trainer.saver is not None
        run.trainer.saver.saved_at = None
        for writer in run.trainer.metrics.writers:
            writer.branch()
    here = [*asked_for, *outside(entry.manifest, parts.provenance.domain, parts.provenance.versions)]
    for reason in here:
        log.warning("exact = false: %s", reason)
    parts.provenance = parts.provenance.with_reasons([*entry.manifest["inexact"], *here])


def _settle(run: Run, folder: Path) -> None:
    """Make id and config those of the folder."""
    write_id(folder, run.trainer.parts.provenance.run_id)
    settle(folder, run.config.resolved())


def _tensors_in_files(run: Run) -> dict[str, torch.Tensor]:
    """Return the large tensors of the state that lie in mapped files: there may be no memory for them a second time."""
    tensors = run.trainer.snapshot().tensors
    large = {name: tensor for name, tensor in tensors.items() if tensor.nbytes > PIECE_BYTES and is_plain(tensor)}
    return {name: tensor for name, tensor in large.items() if in_shared_file(bytes_of(tensor))}


def _another_horizon(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a reason when schedules follow another horizon than the saved config has."""
    key = "total_updates" if "total_updates" in now.get("run", {}) else "total_frames"
    horizons = [config.get("run", {}).get(key) for config in (saved, now)]
    if not now.get("scheduler") or horizons[0] == horizons[1]:
        return []
    return [f"run.{key} is {horizons[1]} here, {horizons[0]} in the run, and schedules follow it"]


def _version_notes(run: Run, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return a remark for each component whose distribution has another version than the checkpoint's."""
    here = run.trainer.parts.provenance.versions
    notes = {}
    for name, distribution in manifest["owners"].items():
        wrote = manifest["versions"].get(distribution)
        if wrote is not None and wrote != here.get(distribution):
            notes[name] = f", but {distribution} is {here.get(distribution)} here and was {wrote}"
    return notes
