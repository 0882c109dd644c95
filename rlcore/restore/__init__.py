"""Giving every component its state back, or saying why it does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.restore.choices import ResumeOptions as ResumeOptions
    from rlcore.restore.fitting import check_array as check_array
    from rlcore.restore.optimizers import check_state as check_state
    from rlcore.restore.optimizers import optimizer_of as optimizer_of

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.restore.fitting": "check_array",
        "rlcore.restore.choices": "ResumeOptions",
        "rlcore.restore.optimizers": "check_state optimizer_of",
    },
)
