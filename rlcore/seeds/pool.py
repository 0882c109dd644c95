"""Several runs at a time: each started when there is room for it, all of them stopped when this process is told to."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

from rlcore.process.signals import ALWAYS, STOPPING
from rlcore.seeds.child import Child

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
    with _collected() as received:
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


@contextmanager
def _collected() -> Iterator[list[int]]:
    """Collect the signals that ask to stop, instead of what they do otherwise; in the main thread alone."""
    received: list[int] = []

    def take(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        now = {number: signal.getsignal(number) for number in STOPPING}
        before = {number: handler for number, handler in now.items() if number in ALWAYS or handler != signal.SIG_IGN}
    for number in before:
        signal.signal(number, take)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
