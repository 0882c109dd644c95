"""What losses, metrics and minibatches come in: mappings by name, and TensorDicts, which are no `Mapping`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types.records import Key


def is_mapping(value: object) -> bool:
    """Return whether a value has entries by name.

    It is asked for every minibatch, for which `isinstance` with a protocol, or `offers`, would be slow.
    """
    return hasattr(value, "items")


def detached(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without their graphs; numbers have none, and stay as they are."""
    return {name: value.detach() if hasattr(value, "detach") else value for name, value in values.items()}


class Rows(NamedTuple):
    """Rows of columns that stay where they are.

    Attributes:
        columns: all rows by key, `[row, *shape]`; the same mapping for as long as they are the same tensors.
        places: of the rows that are meant, int64 `[sample]`.
    """

    columns: Mapping[Key, Tensor]
    places: Tensor


class FoundEntries(dict["Key", "Tensor"]):
    """Entries that are found when they are first read. A class of them has `__missing__`, `__contains__` and `keys`.

    Attributes:
        rows: where some entries can be had besides, all of them as they were found; None where there is no such place.
    """

    __slots__ = ()

    @property
    def rows(self) -> Rows | None:
        """None, where a class does not say otherwise."""
        return None

    def get(self, key: Key, default: Any = None) -> Any:
        """Return an entry, or `default` when there is none."""
        return self[key] if key in self else default  # noqa: SIM401 - this is `get`

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def items(self) -> Any:
        """Return every entry, also those not read yet."""
        return [(key, self[key]) for key in self]

    def values(self) -> Any:
        """Return every tensor, also those not read yet."""
        return [self[key] for key in self]
