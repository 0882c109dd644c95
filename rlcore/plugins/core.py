"""The components that rlcore itself provides, through the same door as everyone's, under the plugin name `core`."""

from __future__ import annotations

from typing import Final

from rlcore.hooks.specs import hookimpl
from rlcore.plugins.component import Component

# the plugin that these components are of
CORE: Final = "core"
_HOOKS: Final = "rlcore.core_hooks"


@hookimpl
def provide_components() -> list[Component]:
    """Return the built-in components."""
    return [
        Component(
            "hook", "progress-bar", f"{_HOOKS}.progress_bar:ProgressBar", summary="a bar on the terminal", shows=True
        ),
        Component(
            "hook", "console-table", f"{_HOOKS}.console_table:ConsoleTable", summary="a table of metrics", shows=True
        ),
        Component("hook", "reward-clip", f"{_HOOKS}.reward_clip:RewardClip", summary="clips rewards of a batch"),
    ]
