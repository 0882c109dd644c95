"""What placed ranks and the process that watches over them tell each other, in their mailbox."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self


@dataclass(frozen=True)
class _Message:
    """A message as JSON: nothing is pickled."""

    def encode(self) -> bytes:
        """Return it as bytes."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """Return the message of such bytes."""
        return cls(**json.loads(content))


@dataclass(frozen=True)
class Said(_Message):
    """What the ranks hear, the same for all.

    Attributes:
        stop: number of the signal that asks the run to stop; 0 while none does.
        wanted: frame at which the state of every rank is asked for; -1 for none.
    """

    stop: int
    wanted: int


@dataclass(frozen=True)
class Heard(_Message):
    """What one rank says.

    Attributes:
        pulse: changes as long as its threads run.
        frames: how far it is.
        begun: whether it trains, or has.
        outcome: the exit code with which it says that it ends; None where it says nothing.
        why: why it ends, in words.
        lost: the rank that is to blame, where it is another one.
        kept: the frames of the states that it has kept.
        sent: frame of the state that it has put into the mailbox; -1 for none.
        texts: how many pieces of text it has put there.
    """

    pulse: int
    frames: int
    begun: bool
    outcome: int | None
    why: str
    lost: int | None
    kept: list[int]
    sent: int
    texts: int


# the names of the mailbox
SAID = "said"


def heard_of(rank: int) -> str:
    """Return the name of what a rank says."""
    return f"heard/{rank}"


def state_of(rank: int) -> str:
    """Return the name of the state that a rank hands over."""
    return f"state/{rank}"


def start_of(rank: int) -> str:
    """Return the name of the state from which a rank goes on."""
    return f"start/{rank}"


def text_of(rank: int, number: int) -> str:
    """Return the name of a piece of text that a rank writes, a JSON list of the stream's name and the text."""
    return f"text/{rank}/{number}"
