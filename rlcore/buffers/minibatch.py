"""The minibatch: a mapping from keys to tensors `[sample, ...]` that gathers an entry when it is first read.

Slicing a TensorDict costs more than a small update, so none is made unless someone asks: `to_tensordict()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rlcore.errors import UnwrittenEntryError
from rlcore.types import Key
from rlcore.types.mappings import FoundEntries

if TYPE_CHECKING:
    import torch
    from tensordict import TensorDict
    from torch import Tensor


class Minibatch(FoundEntries):
    """Entries by key: `minibatch["observation"]`, `minibatch["next", "reward"]`.

    Args:
        size: number of samples.
        available: the keys that can be read.
        gather: returns the entry `[sample, ...]` of a key; called once per key at most.

    Assigning an entry replaces it for whoever comes after; it does not change the batch.
    """

    __slots__ = ("_available", "_gather", "size")

    def __init__(self, size: int, available: tuple[Key, ...], gather: Callable[[Key], Tensor]) -> None:
        super().__init__()
        self.size = size
        self._available = available
        self._gather = gather

    @classmethod
    def of(cls, tensors: Mapping[Key, Tensor]) -> Minibatch:
        """Return a minibatch of tensors that exist already."""
        size = next(iter(tensors.values())).shape[0]
        minibatch = cls(size, tuple(tensors), tensors.__getitem__)
        minibatch.update(tensors)
        return minibatch

    def __missing__(self, key: Key) -> Tensor:
        if key not in self._available:
            keys = ", ".join(str(name) for name in self._available)
            raise UnwrittenEntryError(
                f"the minibatch has no entry {key!r}; it has {keys}. Whoever reads it needs a part that writes it: "
                "advantages and value targets come from an [estimator], others from a transform, hook, buffer or model"
            )
        value = self[key] = self._gather(key)
        return value

    @property
    def batch_size(self) -> torch.Size:
        """`[sample]`, as a TensorDict has it."""
        import torch

        return torch.Size([self.size])

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._available

    def keys(self) -> Any:
        """Return every key that can be read."""
        return dict.fromkeys((*self._available, *super().keys())).keys()

    def to_tensordict(self) -> TensorDict:
        """Return all entries as a TensorDict of batch size `[sample]`."""
        from tensordict import TensorDict

        result = TensorDict({}, batch_size=[self.size])
        for key, value in self.items():
            result.set(key, value)
        return result


class SequenceMinibatch(Minibatch):
    """Entries `[time, sequence, ...]`; what belongs to a sequence as a whole is `[sequence, ...]`.

    Its `size` is the number of its steps.
    """

    __slots__ = ()

    def to_tensordict(self) -> TensorDict:
        """Return all entries as a TensorDict, without batch size: the entries do not agree on one."""
        from tensordict import TensorDict

        result = TensorDict({}, batch_size=[])
        for key, value in self.items():
            result.set(key, value)
        return result
