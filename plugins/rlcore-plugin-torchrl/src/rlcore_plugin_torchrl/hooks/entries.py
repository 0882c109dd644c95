"""Reading entries of batches, with errors that say what a batch holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import HookError, did_you_mean
from rlcore.types import MASK, Key, offers
from rlcore_plugin_torchrl.protocols import SelectsEntries

if TYPE_CHECKING:
    from torch import Tensor

REWARD: Final[Key] = ("next", "reward")


class MissingEntryError(HookError, KeyError):
    """A batch has no entry that a hook reads."""


def as_key(key: str | Sequence[str]) -> Key:
    """Return the key of an entry as batches take it: a name, or a tuple of names for a nested entry."""
    return key if isinstance(key, str) else tuple(key)


def entry(batch: Any, key: Key, hook: object) -> Tensor:
    """Return an entry of a batch, a TensorDict or a minibatch.

    Args:
        batch: from which to read.
        key: of the entry.
        hook: who asks, for the message.

    Raises:
        HookError: there is none; says which there are.
    """
    value: Tensor | None = batch.get(key, None)
    if value is None:
        raise missing(batch, key, hook)
    return value


def missing(batch: Any, key: Key, hook: object) -> MissingEntryError:
    """Return the error for an entry that a batch does not have."""
    names = list(dict.fromkeys(map(str, batch.keys(True, True) if offers(batch, SelectsEntries) else batch.keys())))
    return MissingEntryError(
        f"{type(hook).__name__}: the batch has no entry {key!r}{did_you_mean(str(key), names)}; "
        f"it has {', '.join(names) or 'none'}"
    )


def valid_mask(batch: Any) -> Tensor | None:
    """Return the mask of valid steps `[*batch]`, or None where every step is valid."""
    mask: Tensor | None = batch.get(MASK, None)
    return mask


def valid_entry(batch: Any, key: Key, hook: object) -> Tensor:
    """Return an entry of a batch, of its valid steps only.

    Raises:
        HookError: there is no such entry, or the mask is of another shape.
    """
    values, mask = entry(batch, key, hook), valid_mask(batch)
    if mask is None:
        return values
    if values.shape[: mask.ndim] != mask.shape:
        raise HookError(
            f"{type(hook).__name__}: the entry {key!r} has shape {list(values.shape)}, and the mask of valid steps "
            f"{list(mask.shape)}; the first must begin with the second"
        )
    return values[mask]
