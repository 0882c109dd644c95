"""The command line: the commands, one per file, each with a function `run(options)` that returns the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.cli.arguments import positive as positive
    from rlcore.cli.arguments import trust_argument as trust_argument
    from rlcore.cli.train import train_flags as train_flags

__all__, __getattr__, __dir__ = lazy(
    __name__, {"rlcore.cli.arguments": "positive trust_argument", "rlcore.cli.train": "train_flags"}
)
