"""Keeps some entries of a batch and drops the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, Field

from rlcore.errors import HookError
from rlcore.types import Context, Key
from rlcore_plugin_torchrl.hooks.entries import as_key, missing
from rlcore_plugin_torchrl.hooks.stock import StockHook

if TYPE_CHECKING:
    from tensordict import TensorDict


class SelectKeys(StockHook):
    """Keeps only these entries of each batch.

    Args:
        keys: of the entries; a nested one is a tuple of names.

    Raises:
        HookError: `keys` is a bare string, which would be read as a sequence of letters.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"batch_process": "__call__"})
    default_name: ClassVar[str] = "select_keys"

    def __init__(self, keys: Sequence[Key]) -> None:
        if isinstance(keys, str):
            raise HookError(f"SelectKeys: keys = {keys!r}: expected a sequence of keys, such as a list of one")
        self.keys = tuple(keys)

    def __call__(self, batch: TensorDict) -> TensorDict:
        """Return a batch with these entries.

        Raises:
            HookError: the batch lacks one.
        """
        for key in self.keys:
            if batch.get(key, None) is None:
                raise missing(batch, key, self)
        return batch.select(*self.keys)


class SelectKeysConfig(BaseModel, extra="forbid"):
    """What is kept."""

    keys: list[str | list[str]] = Field(
        description="the entries to keep; a nested one is a list of names", min_length=1
    )


def from_config(config: SelectKeysConfig, context: Context) -> Any:
    """Return the hook of a config."""
    return SelectKeys([as_key(key) for key in config.keys]).as_component()
