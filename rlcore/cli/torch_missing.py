"""One message where torch is not installed, instead of one for each part that cannot be imported without it."""

from __future__ import annotations

import importlib.util
from typing import Final

from rlcore.errors import MissingPluginError

# commands that build parts, or look at what their config sections may hold
NEEDED_BY: Final = ("config", "evaluate", "export", "init", "prove", "train", "watch")


def check_torch(command: str) -> None:
    """See that a command has torch if it needs it.

    Raises:
        MissingPluginError: it has not; says how to install it.
    """
    if command in NEEDED_BY and importlib.util.find_spec("torch") is None:
        raise MissingPluginError(
            f"rlcore {command} needs PyTorch, which is not installed here: pip install torch; for a build for a GPU "
            "or for the CPU alone, see https://pytorch.org/get-started"
        )
