"""Runs that stop and resume, beside the same run without a stop."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlcore.training.loop import Loop
from rlcore_plugin_testing.small_run import make_trainer


def check_resumed(
    folder: Path, *overrides: str, sections: Mapping[str, Any] | None = None, stop_at: int | None = None
) -> Loop:
    """Check that a small run which stops and resumes ends in the same state as without a stop, to the bit.

    What the parts of observers hold, hooks that only look, does not matter.

    Args:
        folder: where run folders are made.
        overrides: `"section.key=value"`, as after `--set`.
        sections: replace whole sections, see `make_config`.
        stop_at: on the clock of the run; None for the middle.

    Returns:
        The trainer of the run without a stop.
    """
    whole = make_trainer(*overrides, folder=folder / "whole", sections=sections)
    whole.train()
    stopped = make_trainer(*overrides, folder=folder / "parts", sections=sections)
    stopped.stop_at = whole.progress.total // 2 if stop_at is None else stop_at
    stopped.train()
    assert stopped.progress.updates < whole.progress.updates, "nothing is left to learn after the stop"
    resumed = make_trainer(*overrides, folder=folder / "parts", sections=sections, resume=True)
    resumed.train()
    assert resumed.progress.updates == whole.progress.updates
    assert newest(whole)["exact"], newest(whole)["inexact"]
    assert differing_parts(whole, resumed) == []
    return whole


def differing_parts(whole: Loop, resumed: Loop) -> list[str]:
    """Return the names of the parts whose last saved state differs, but for those of observers."""
    expected, found = newest(whole)["digests"], newest(resumed)["digests"]
    observers = whole.parts.provenance.observers
    return [name for name in expected if expected[name] != found[name] and name not in observers]


def newest(trainer: Loop) -> Mapping[str, Any]:
    """Return the manifest of the latest checkpoint of a run."""
    assert trainer.parts.store is not None
    return trainer.parts.store.entries()[-1].manifest
