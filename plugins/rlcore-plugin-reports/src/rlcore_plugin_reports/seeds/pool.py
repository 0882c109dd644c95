"""Several runs at a time: each started when there is room for it, all of them stopped when this process is told to."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from typing import Final

from rlcore.process import collected_stops
from rlcore_plugin_reports.seeds.child import Child

# between looks at the processes
_LOOK: Final = 0.2


def train_all(
    children: Sequence[Child], jobs: int, may_start: Callable[[], bool], show: Callable[[], None]
) -> Sequence[int]:
    """Train the runs until all of them have ended; return the signals that this process received meanwhile.

    A signal goes on to every run, which saves its state and ends, and no further one is started.

    Args:
        children: to train, in this order.
        jobs: how many at a time.
        may_start: asked before each start; after a False no further one is started.
        show: called after each look at them.
    """
    waiting = list(children)
    with collected_stops() as received:
        passed_on = 0
        try:
            while True:
                for number in received[passed_on:]:
                    passed_on += 1
                    for child in children:
                        child.send(number)
                while waiting and not received and sum(child.running for child in children) < jobs:
                    if not may_start():
                        waiting.clear()
                        break
                    waiting.pop(0).start()
                for child in children:
                    child.look()
                show()
                if not any(child.running for child in children) and (received or not waiting):
                    return received
                time.sleep(_LOOK)
        finally:
            _end(children)


def _end(children: Sequence[Child]) -> None:
    """Stop what still runs where something went wrong here; each saves its state."""
    for child in children:
        child.send(signal.SIGTERM)
    while any(child.running for child in children):
        for child in children:
            child.look()
        time.sleep(_LOOK)
