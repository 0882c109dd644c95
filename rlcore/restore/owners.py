"""Whether the distributions that wrote the states are those that provide the components now."""

from __future__ import annotations

from collections.abc import Mapping

from rlcore.errors import StorageError
from rlcore.plugins.known import same_owner


def check_owners(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse to give state to a component of another distribution than the one that wrote it.

    Raises:
        StorageError: a plugin was replaced by another that has its name; names both.
    """
    for line in changed_owners(before, now):
        raise StorageError(
            f"{line}; install what wrote it again, or go on with the other one and without the promise of an exact "
            "resume: --accept-changes"
        )


def changed_owners(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a line for each component of another distribution than the one that wrote its state."""
    return [
        f"{name} was written by {before[name]}, and is provided by {owner} here"
        for name, owner in now.items()
        if owner and before.get(name) and not same_owner(before[name], owner)
    ]
