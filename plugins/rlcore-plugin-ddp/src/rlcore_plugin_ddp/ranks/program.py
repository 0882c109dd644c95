"""The program that the supervisor starts: it has everything imported, and starts ranks as the supervisor says."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
from collections.abc import Sequence

from rlcore.errors import RlcoreError, notes_of
from rlcore.process import STOPPING, end_with_parent, show_log
from rlcore.run import Asked, check_unchanged_since_latest, validated
from rlcore_plugin_ddp.ranks.board import RankBoard
from rlcore_plugin_ddp.ranks.building import build_launcher
from rlcore_plugin_ddp.ranks.shares import divided


def main(asked: int, channel: int, board: Sequence[int]) -> int:
    """Serve the supervisor; return the exit code of a config that cannot be used.

    Args:
        asked: file descriptor of what the command asks, as the supervisor wrote it.
        channel: that of the socket to the supervisor.
        board: those of the memory in which it sees the ranks.
    """
    end_with_parent()
    for number in STOPPING:  # it is the supervisor's to answer them
        signal.signal(number, signal.SIG_IGN)
    with os.fdopen(asked, "rb") as stream:
        stream.seek(0)
        wanted: Asked = pickle.load(stream)
    show_log(wanted.quiet)
    try:
        _serve(wanted, socket.socket(fileno=channel), board)
    except RlcoreError as error:
        notes = "".join(f"\n  {note}" for note in notes_of(error))
        sys.stderr.write(f"error: {error}{notes}\n")
        return error.exit_code
    return 0


def _serve(asked: Asked, channel: socket.socket, board: Sequence[int]) -> None:
    """Start ranks as the supervisor says, until it is gone.

    Raises:
        ConfigError: the ranks cannot have equal shares of the run; or it is to go on, and is another one.
    """
    config = validated(asked.raw, asked.enable, asked.disable)
    assert config.ranks is not None
    divided(config, config.ranks.count)
    if asked.resume is not None and not asked.resume.accept_changes:
        check_unchanged_since_latest(config, asked.place.absolute())
    build_launcher(config).serve(config, asked, channel, RankBoard(config.ranks.count, board))


if __name__ == "__main__":
    own, to_supervisor, *words = map(int, sys.argv[1:])
    sys.exit(main(own, to_supervisor, words))
