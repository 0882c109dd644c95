"""From TOML to validated sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.config.own_modules import import_named as import_named
    from rlcore.config.own_modules import meant as meant
    from rlcore.config.trust import check_file as check_file
    from rlcore.config.trust import note_file as note_file
    from rlcore.config.trust import note_written as note_written

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.config.own_modules": "import_named meant",
        "rlcore.config.trust": "check_file note_file note_written",
    },
)
