"""Keeps the TensorDicts that it is shown, and writes them into a file."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import torch
from tensordict import TensorDict, TensorDictBase

from rlcore.errors import ConfigError, RlcoreError, StorageError
from rlcore_plugin_video.as_transform import as_transform

if TYPE_CHECKING:
    from rlcore.types import Key

log = logging.getLogger(__name__)

_ENDING: Final = "_tensordict.t"


class TensorDictRecorder:
    """Called on the TensorDict of each step, keeps a copy; `dump` writes all of them as one.

    Named after TorchRL's recorder. Where a script has imported `torchrl.envs`, it is a transform of that library too.

    Args:
        out_file_base: beginning of the names of the files; its folder is made.
        skip_reset: leave out the first TensorDict of each recording, which usually is that of a reset.
        skip: calls between two TensorDicts, beginning with the first that is not left out.
        in_keys: entries to keep; None: all.
        max_steps: most TensorDicts that are kept; those that come then are dropped until the next `dump`.

    Raises:
        ConfigError: `skip` or `max_steps` is not positive.
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Return a transform of TorchRL, where that library is in use."""
        return super().__new__(as_transform(cls))

    def __init__(
        self,
        out_file_base: str | Path,
        skip_reset: bool = True,
        skip: int = 4,
        in_keys: Iterable[Key] | None = None,
        max_steps: int = 10_000,
    ) -> None:
        if min(skip, max_steps) < 1:
            raise ConfigError(f"TensorDictRecorder: skip = {skip} and max_steps = {max_steps} must be positive")
        self._base = str(out_file_base)
        self._skip_reset = skip_reset
        self._skip = skip
        self._in_keys = None if in_keys is None else list(in_keys)
        self._max_steps = max_steps
        self._steps: list[TensorDictBase] = []
        self._calls = 0
        self._full = False

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Keep a copy, if it is time, and return the TensorDict.

        Raises:
            RlcoreError: it lacks an entry that is to be kept.
        """
        counted = self._calls - self._skip_reset
        self._calls += 1
        if counted < 0 or counted % self._skip:
            return tensordict
        if len(self._steps) == self._max_steps:
            if not self._full:
                self._full = True
                log.warning("TensorDictRecorder %r keeps %d steps and drops the others", self._base, self._max_steps)
            return tensordict
        try:
            kept = tensordict if self._in_keys is None else tensordict.select(*self._in_keys)
        except KeyError as error:
            there = ", ".join(map(repr, tensordict.keys(True, True)))
            raise RlcoreError(f"TensorDictRecorder {self._base!r}: {error.args[0]}; there is: {there}") from error
        self._steps.append(kept.detach().to("cpu").clone())
        return tensordict

    def dump(self, suffix: str | None = None) -> Path | None:
        """Write what was kept and forget it.

        Args:
            suffix: ends the name, so that the file is `BASE_SUFFIX_tensordict.t`. A file of that name is replaced.

        Returns:
            The file; None when nothing was kept.

        Raises:
            RlcoreError: the TensorDicts do not have the same entries and shapes; they are kept.
            StorageError: the file cannot be written; they are kept.
        """
        if not self._steps:
            self._clear()
            return None
        path = Path(self._base if suffix is None else f"{self._base}_{suffix}")
        path = path.with_name(path.name + _ENDING)
        try:
            stacked = TensorDict.stack(self._steps, 0).contiguous()
        except (RuntimeError, KeyError) as error:
            raise RlcoreError(f"TensorDictRecorder {self._base!r}: the steps are not of one form: {error}") from error
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save({"batch_size": list(stacked.batch_size), "entries": stacked.to_dict()}, path)
        except OSError as error:
            raise StorageError(f"{str(path)!r} cannot be written: {error}") from error
        self._clear()
        return path

    def _clear(self) -> None:
        self._steps = []
        self._calls = 0
        self._full = False


def load_tensordict(path: str | Path) -> TensorDict:
    """Return what a recorder wrote, `[step, ...]`, without running code from the file."""
    saved = torch.load(path, weights_only=True)
    return TensorDict(saved["entries"], batch_size=saved["batch_size"])
