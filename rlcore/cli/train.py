"""`rlcore train`: which run it is, and who trains it. What that needs is imported by whoever does."""

from __future__ import annotations

import argparse

from rlcore.cli.train_config import asked_by
from rlcore.config.launchers import check_alone, launcher_class
from rlcore.errors import ConfigError, RlcoreError
from rlcore.plugins.known import lend
from rlcore.run.asked import Asked
from rlcore.types.launcher import Launcher


def run(options: argparse.Namespace) -> int:
    """Train; return the exit code."""
    if options.seeds is not None:
        check_alone("--seeds trains each seed in one process; leave torchrun out")
        code: int = lend("rlcore.cli", "train_seeds", "rlcore train --seeds")(options)
        return code
    if options.jobs is not None:
        raise ConfigError("--jobs says how many seeds are trained at a time; add --seeds")
    wanted = asked_by(options)
    if "ranks" not in wanted.raw.values or options.dry_run:
        from rlcore.cli import train_alone

        check_alone("the config has no [ranks], so each would train the whole run; add --set ranks.count={size}")
        return train_alone.run(wanted, options.dry_run)
    return _launcher(wanted).train(wanted)


def _launcher(wanted: Asked) -> type[Launcher]:
    """Return the launcher that `[ranks]` names.

    Raises:
        RlcoreError: says everything that is wrong with the config, where there is no such launcher.
    """
    try:
        return launcher_class(wanted.ranks, wanted.disable)
    except RlcoreError:
        from rlcore.run.checking import validated

        validated(wanted.raw, wanted.enable, wanted.disable)
        raise
