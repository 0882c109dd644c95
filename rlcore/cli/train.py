"""`rlcore train`: which run it is, and who trains it. What that needs is imported by whoever does."""

from __future__ import annotations

import argparse

from rlcore.cli.train_config import prepared
from rlcore.config.launchers import check_alone, joins_ranks
from rlcore.errors import ConfigError
from rlcore.plugins.known import lend


def run(options: argparse.Namespace) -> int:
    """Train; return the exit code."""
    if options.seeds is not None:
        check_alone("--seeds trains each seed in one process; leave torchrun out")
        code: int = lend("rlcore.cli", "train_seeds", "rlcore train --seeds")(options)
        return code
    if options.jobs is not None:
        raise ConfigError("--jobs says how many seeds are trained at a time; add --seeds")
    raw = prepared(options)
    ranks = raw.values.get("ranks")
    if ranks is None or options.dry_run:
        from rlcore.cli import train_alone

        check_alone("the config has no [ranks], so each would train the whole run; add --set ranks.count={size}")
        return train_alone.run(options, raw)
    if isinstance(ranks, dict) and joins_ranks(ranks):
        from rlcore.cli import train_joined

        return train_joined.run(options, raw)
    from rlcore.cli import train_ranks

    return train_ranks.run(options, raw)
