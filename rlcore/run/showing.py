"""What shows on the terminal how far a run is, where no hook of its config does."""

from __future__ import annotations

import sys
from typing import Any, Final

from rlcore.config.sections import Config, Section
from rlcore.core_hooks.progress_lines import ProgressLines

_SHOWN_BY: Final = ("progress-bar", "console-table")


def progress_hooks(config: Config, quiet: bool) -> list[Any]:
    """Return the hook that prints a line now and then, unless something else shows the run, or nothing is to."""
    return [] if quiet or any(_shows(hook) for hook in config.sections["hook"]) else [ProgressLines()]


def _shows(hook: Section) -> bool:
    """Return whether a hook shows how far the run is; a bar may want a terminal for that."""
    always = hook.config.model_dump().get("always", True)
    return hook.provided.component.name in _SHOWN_BY and (always or sys.stderr.isatty())
