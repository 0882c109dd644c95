"""How another process of rlcore is started."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from rlcore.process import companion


def rlcore_command() -> list[str]:
    """Return the command of another rlcore, which imports from the same places as this process.

    `python -m rlcore` imports from the working directory too, and the script `rlcore` does not.
    """
    as_module = Path(sys.argv[0]).name == "__main__.py"
    return [sys.executable, *([] if as_module else ["-P"]), "-m", "rlcore"]


def start_run(
    arguments: Sequence[str], output: IO[bytes], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start another rlcore; when this process is gone, however it ended, that one is told to save its state and end.

    It has a session of its own, so that Ctrl-C reaches it through this process alone.

    Args:
        arguments: after `rlcore`.
        output: where both of its streams go.
        environment: of the process; default: that of this one.
    """
    process = subprocess.Popen(
        [*rlcore_command(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    companion.end_with_this(process.pid, signal.SIGTERM)
    return process
