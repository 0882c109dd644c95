"""A run folder of a translated model: built, filled, and saved as its first checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import tomli_w

from rlcore import build, load_config
from rlcore.checkpoints import Latest
from rlcore.config import note_written
from rlcore.envs import recorded_spec
from rlcore.errors import ConfigError
from rlcore.files import replace as write_file
from rlcore.run import Config, Run, claimed, open_backend
from rlcore.run_folder import CHECKPOINTS, CONFIG_FILE
from rlcore.state import Snapshot
from rlcore_plugin_import.filling import fill
from rlcore_plugin_import.layout import Translation
from rlcore_plugin_import.spaces import check_space

# what an agent is made of; the other sections say how it is trained
_OF_AN_AGENT: Final = ("run", "plugins", "env", "transform", "model", "evaluator", "versions")
_OF_STATES: Final = ("model", "transform", "progress")


@dataclass(frozen=True)
class Imported:
    """What was made of a file.

    Attributes:
        folder: of the run, as it was named.
        translation: of the file.
        notes: what was not taken, or is otherwise here.
        frames: at which the run stands.
        total: its horizon.
    """

    folder: Path
    translation: Translation
    notes: Sequence[str]
    frames: int
    total: int


def write_run(translation: Translation, overrides: Sequence[str] = ()) -> Imported:
    """Make the run folder; where something does not fit, nothing is written.

    Args:
        translation: of a file, with the env in its config.
        overrides: `"section.key=value"`, as after `--set`.

    Raises:
        ConfigError: the config is refused, the env has other spaces, or the folder is there already.
        StorageError: a tensor does not fit.
    """
    config = load_config(translation.config, list(overrides))
    place = config.run.place
    if place.exists():
        raise ConfigError(f"run folder {str(place)!r} exists already; choose another name with --name, or remove it")
    tried = build(config, write=False)
    try:
        _check_spaces(tried, translation)
        notes = [*translation.notes, *fill(tried, translation)]
        if not translation.trains:
            _write_agent(tried, config, place)
    finally:
        tried.trainer.shutdown()
    if translation.trains:
        _write_training(config, translation)
    progress = tried.trainer.progress
    return Imported(place, translation, notes, progress.frames, progress.total_frames)


def _check_spaces(run: Run, translation: Translation) -> None:
    record = run.trainer.parts.provenance.env
    if not record:
        return
    spec = recorded_spec(record)
    check_space("observation", translation.spaces.get("observation", {}), spec.observation_space, spec.id)
    check_space("action", translation.spaces.get("action", {}), spec.action_space, spec.id)


def _write_training(config: Config, translation: Translation) -> None:
    """Write a run that goes on; where that fails, its folder goes again: a resume would begin with other weights."""
    run = build(config)
    try:
        fill(run, translation)
        run.trainer.saving.quietly()
    except BaseException:
        shutil.rmtree(config.run.place, ignore_errors=True)
        raise
    finally:
        run.trainer.shutdown()


def _write_agent(run: Run, config: Config, place: Path) -> None:
    """Write a run whose policy acts, and of which there is nothing to train."""
    kept: dict[str, Any] = {name: value for name, value in config.resolved().items() if name in _OF_AN_AGENT}
    snapshot = run.trainer.snapshot()
    states = {name: state for name, state in snapshot.states().items() if name.partition(".")[0] in _OF_STATES}
    with claimed(place, False) as claim:
        assert claim.folder is not None
        try:
            write_file(claim.folder / CONFIG_FILE, tomli_w.dumps(kept), durable=True)
            note_written(kept, claim.folder)
            store = open_backend(None).store(claim.folder / CHECKPOINTS, (Latest(1),))
            provenance = replace(run.trainer.parts.provenance, config=kept, run_id="")
            store.save(Snapshot.of(states, run.trainer.progress), provenance)
        finally:
            claim.release()
