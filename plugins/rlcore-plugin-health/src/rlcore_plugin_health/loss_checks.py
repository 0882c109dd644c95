"""What a loss tells of a run that goes wrong, by checks that its own plugin wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from rlcore.types import offers

# rows of metrics in succession of which a loss must say the same, before it counts as more than a bad moment
IN_SUCCESSION: Final = 2

LossCheck: TypeAlias = Callable[[Mapping[str, float], float], str | None]


class ChecksItself(Protocol):
    """A loss that tells by the metrics of a run what goes wrong with it, and which key to change."""

    def health_checks(self) -> Mapping[str, LossCheck]:
        """Return its checks, by the name with which a config ignores one.

        A check is called for each row of metrics with the row, by full names such as `train/q_value`, and the largest
        absolute reward so far. It returns a message with the figures, the section, the key and a value, or None. It
        keeps no state: the hook warns once a check had a message for two rows in succession.
        """
        ...


def checks_of(loss: object) -> Mapping[str, LossCheck]:
    """Return the checks of a loss by name; none where it has none, or where there is no loss."""
    return loss.health_checks() if offers(loss, ChecksItself) else {}


def lasting(name: str, message: str | None, succession: dict[str, int]) -> str | None:
    """Return the message of a check that had one for several rows in succession, else None.

    Args:
        name: of the check.
        message: for the present row.
        succession: rows in succession with a message, by check; counted here.
    """
    succession[name] = 0 if message is None else succession.get(name, 0) + 1
    return message if succession[name] >= IN_SUCCESSION else None
