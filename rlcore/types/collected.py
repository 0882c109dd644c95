"""A collected batch as its tensors: a TensorDict of them costs more than a small update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlcore.types.part import Part, with_defaults
from rlcore.types.records import MASK

if TYPE_CHECKING:
    import torch
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types.records import Key


class CollectedBatch:
    """A batch `[env, time]` as its tensors by key, in the order in which a TensorDict of them has its keys.

    It answers what buffers ask a TensorDict: `get`, `[key]`, `in`, `keys`, `numel()`, `batch_size`, `batch_dims`. A
    nested entry has the tuple of its names for a key, and no key names several entries. Nothing can be set.

    Args:
        columns: `[env, time, ...]` by key, without the mask.
        mask: bool `[env, time, 1]`, False for steps that do not count; None where all count.
        shared: keys of columns that lie in the memory of others; a TensorDict has copies of them, since whoever takes
            one may write into it.

    Attributes:
        columns: the same; from batch to batch they may be the same tensors with other numbers.
        mask: the same.
        batch_size: `[env, time]`.
        batch_dims: 2.
    """

    __slots__ = ("_shared", "_steps", "_template", "batch_dims", "batch_size", "columns", "mask")

    def __init__(self, columns: Mapping[Key, Tensor], mask: Tensor | None = None, shared: Sequence[Key] = ()) -> None:
        self.columns = dict(columns)
        self.mask = mask
        self._shared = tuple(shared)
        self.batch_size: torch.Size = next(iter(self.columns.values())).shape[:2]
        self.batch_dims = 2
        self._steps = self.batch_size.numel()
        self._template: TensorDict | None = None

    def numel(self) -> int:
        """Return the steps of the batch, over all envs, with those that do not count."""
        return self._steps

    def keys(self, include_nested: bool = True, leaves_only: bool = True) -> list[Key]:
        """Return the keys of all entries, the mask's among them; the arguments are there for those of a TensorDict."""
        return list(self.columns) if self.mask is None else [*self.columns, MASK]

    def get(self, key: Key, default: Any = None) -> Any:
        """Return an entry, or `default` when there is none."""
        value = self.mask if key == MASK else self.columns.get(key)
        return default if value is None else value

    def __getitem__(self, key: Key) -> Tensor:
        """Return an entry.

        Raises:
            KeyError: there is none.
        """
        value: Tensor | None = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return key in self.columns or (key == MASK and self.mask is not None)

    def to(self, device: torch.device) -> CollectedBatch:
        """Return the batch on another device."""
        mask = None if self.mask is None else self.mask.to(device)
        return CollectedBatch({key: column.to(device) for key, column in self.columns.items()}, mask)

    def to_tensordict(self) -> TensorDict:
        """Return a new TensorDict of these tensors; setting its entries changes nothing here."""
        if self._template is None:
            self._template = self._viewed()
        for key in self._shared:
            self._template[key].copy_(self.columns[key])
        return self._template.copy()

    def _viewed(self) -> TensorDict:
        from tensordict import TensorDict

        size = self.batch_size
        nested: dict[str, dict[str, Tensor]] = {}
        entries: dict[str, Any] = {}
        for key in self.keys():
            column = self[key].clone() if key in self._shared else self[key]
            if isinstance(key, str):
                entries[key] = column
            else:
                entries.setdefault(key[0], nested.setdefault(key[0], {}))[key[1]] = column
        entries |= {name: TensorDict(inner, batch_size=size) for name, inner in nested.items()}
        return TensorDict(entries, batch_size=size)


def takes_columns(part: object) -> bool:
    """Return whether the batches of a part may be their tensors."""
    return with_defaults(part, Part).takes_columns
