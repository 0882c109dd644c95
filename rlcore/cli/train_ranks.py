"""`rlcore train` of a config with `[ranks]`: this process watches, and others train."""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlcore.cli.durations import spoken
from rlcore.cli.train_config import place_of, prepared, run_keys
from rlcore.config.common_keys import Defaults
from rlcore.config.core import RanksConfig
from rlcore.config.raw import RawConfig
from rlcore.config.validation import core_section
from rlcore.errors import RlcoreError, notes_of
from rlcore.process.age import age
from rlcore.process.forks import end_with_parent
from rlcore.process.signals import STOPPING
from rlcore.process.streams import show_log
from rlcore.ranks.supervisor import Supervisor
from rlcore.types.progress import Clock


def run(options: argparse.Namespace, raw: RawConfig) -> int:
    """Train; return the exit code."""
    ranks: RanksConfig | None = core_section(raw, "ranks", [], Defaults(raw))
    ranks = ranks or RanksConfig.model_validate({})  # the template finds what is wrong with it, and says so
    place = Path(options.resume) if options.resume else place_of(raw)
    given = {name: value for name, value in vars(options).items() if name not in ("of_plugin", "command")}
    time_limit = None if options.max_time is None else time.monotonic() - age() + options.max_time
    settings = json.dumps({"options": given, "place": str(place), "time_limit": time_limit})
    program = [sys.executable, *(["-P"] if sys.flags.safe_path else []), "-m", __name__, settings]
    resume = options.resume is not None
    clock: Clock = "updates" if "total_updates" in run_keys(raw) else "frames"
    return Supervisor(program, ranks.count, ranks.restarts, ranks.deadline, place, resume, options.grace, clock).run()


def template(settings: dict[str, Any], channel: int, *board: int) -> int:
    """Be the process from which the ranks are forked; return the exit code of a config that cannot be used."""
    end_with_parent()
    for number in STOPPING:  # it is the supervisor's to answer them
        signal.signal(number, signal.SIG_IGN)
    show_log(settings["options"]["quiet"])
    try:
        _serve(settings, channel, board)
    except RlcoreError as error:
        notes = "".join(f"\n  {note}" for note in notes_of(error))
        print(f"error: {error}{notes}", file=sys.stderr)
        return error.exit_code
    return 0


def _serve(settings: dict[str, Any], channel: int, board: Sequence[int]) -> None:
    from rlcore.cli.train_alone import resume_options
    from rlcore.ranks.rank import Order
    from rlcore.ranks.template import serve
    from rlcore.run.checking import validated

    options = argparse.Namespace(**settings["options"])
    config = validated(prepared(options), options.enable, options.disable)
    limit = settings["time_limit"]
    order = Order(
        place=Path(settings["place"]),
        quiet=options.quiet,
        until=options.until,
        time_limit=None if limit is None else (limit, spoken(options.max_time)),
        resume=resume_options(options),
        enable=tuple(options.enable),
        disable=tuple(options.disable),
    )
    serve(config, order, socket.socket(fileno=channel), board)


if __name__ == "__main__":
    sys.exit(template(json.loads(sys.argv[1]), *map(int, sys.argv[2:])))
