"""From TOML to validated sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.config.core import SAFE_NAME as SAFE_NAME
    from rlcore.config.file import read as read
    from rlcore.config.observers import leave_out_shown as leave_out_shown
    from rlcore.config.own_modules import import_named as import_named
    from rlcore.config.own_modules import meant as meant
    from rlcore.config.problems import ConfigProblems as ConfigProblems
    from rlcore.config.raw import RawConfig as RawConfig
    from rlcore.config.sections import validate as validate
    from rlcore.config.trust import check_file as check_file
    from rlcore.config.trust import note_file as note_file
    from rlcore.config.trust import note_written as note_written
    from rlcore.config.validation import explain as explain

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.config.own_modules": "import_named meant",
        "rlcore.config.core": "SAFE_NAME",
        "rlcore.config.file": "read",
        "rlcore.config.observers": "leave_out_shown",
        "rlcore.config.problems": "ConfigProblems",
        "rlcore.config.raw": "RawConfig",
        "rlcore.config.sections": "validate",
        "rlcore.config.trust": "check_file note_file note_written",
        "rlcore.config.validation": "explain",
    },
)
