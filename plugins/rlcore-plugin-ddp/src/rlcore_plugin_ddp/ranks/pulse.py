"""A thread that says that a rank moves, and ends the rank with the process that started it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rlcore.errors import RankLost
from rlcore.types import Heart
from rlcore_plugin_ddp.ranks.waiting import WaitingGroup

log = logging.getLogger(__name__)

# seconds between two looks at whether the rank moves
_LOOK: Final = 0.1


class Pulse:
    """Tells the group of a rank that the rank moves.

    While the rank waits for others nothing of it moves, and yet it does not hang: the group ends such a wait.

    Args:
        heart: of the rank.
        group: of the rank.
        tell: called at each look.
    """

    def __init__(self, heart: Heart, group: WaitingGroup, tell: Callable[[], None] = lambda: None) -> None:
        self._heart = heart
        self._group = group
        self._tell = tell
        self._parent = os.getppid()
        self._done = threading.Event()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Do so during what happens inside."""
        thread = threading.Thread(target=self._beat, name="rlcore pulse", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join()

    def _beat(self) -> None:
        heart, mark = self._heart, self._heart.mark()
        while not self._done.wait(_LOOK):
            if os.getppid() != self._parent:
                log.error("error: rank %d ends: the process that started it is gone", self._group.rank)
                os._exit(RankLost.exit_code)
            if heart.paused or heart.mark() != mark:
                self._group.beat()
            elif self._group.waits:
                heart.beats += 1
            mark = heart.mark()
            self._tell()
