"""`rlcore train`: which run it is, and who trains it. What that needs is imported by whoever does."""

from __future__ import annotations

import argparse

from rlcore.cli.train_config import prepared
from rlcore.errors import ConfigError


def run(options: argparse.Namespace) -> int:
    """Train; return the exit code."""
    if options.seeds is not None:
        from rlcore.cli import train_seeds

        return train_seeds.run(options)
    if options.jobs is not None:
        raise ConfigError("--jobs says how many seeds are trained at a time; add --seeds")
    raw = prepared(options)
    if "ranks" in raw.values and not options.dry_run:
        from rlcore.cli import train_ranks

        return train_ranks.run(options, raw)
    from rlcore.cli import train_alone

    return train_alone.run(options, raw)
