"""The command line: the commands, one per file, each with a function `run(options)` that returns its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.cli.answers import Answer as Answer
    from rlcore.cli.answers import add_json as add_json
    from rlcore.cli.arguments import positive as positive
    from rlcore.cli.arguments import trust_argument as trust_argument
    from rlcore.cli.train import train_flags as train_flags
    from rlcore.cli.train_config import prepared as prepared
    from rlcore.cli.trained import Trained as Trained
    from rlcore.cli.trained import run_end as run_end

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.cli.answers": "Answer add_json",
        "rlcore.cli.arguments": "positive trust_argument",
        "rlcore.cli.train": "train_flags",
        "rlcore.cli.train_config": "prepared",
        "rlcore.cli.trained": "Trained run_end",
    },
)
