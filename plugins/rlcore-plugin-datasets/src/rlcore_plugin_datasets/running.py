"""The running episodes of each env, from batch to batch, until they end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from rlcore.types import MASK, Key
from rlcore_plugin_datasets.episode import Episode

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array
    from rlcore_plugin_datasets.infos import StepInfos

_ENTRIES: Final[dict[str, Key]] = {
    "observation": "observation",
    "action": "action",
    "reward": ("next", "reward"),
    "terminated": ("next", "terminated"),
    "truncated": ("next", "truncated"),
}
_Steps = dict[str, "Array"]  # by entry, [step, ...]


class RunningEpisodes:
    """Takes batches `[env, time]`, and gives the episodes that end in them.

    Args:
        dtypes: of observations and actions, as their spaces have them.
        infos: of the steps of the envs, where episodes have them.
    """

    def __init__(self, dtypes: tuple[Any, Any], infos: StepInfos | None = None) -> None:
        self._infos = infos
        self._dtypes = dict(zip(("observation", "action"), dtypes, strict=True))
        self._open: dict[int, list[_Steps]] = {}

    def take(self, batch: TensorDict) -> Iterator[Episode]:
        """Take a batch, and yield the episodes that end in it, env after env."""
        columns = {name: batch[key].numpy(force=True) for name, key in _ENTRIES.items()}
        following = batch["next", "observation"].numpy(force=True)
        mask = batch.get(MASK, None)
        for env in range(following.shape[0]):
            own = {name: column[env] for name, column in columns.items()}
            last = following[env]
            if mask is not None:
                valid = mask[env].reshape(-1).numpy(force=True)
                own, last = {name: column[valid] for name, column in own.items()}, last[valid]
            yield from self._of_env(env, own, last)

    def forget(self) -> None:
        """Drop the running episodes: others begin."""
        self._open.clear()
        if self._infos is not None:
            self._infos.forget()

    def state_dict(self) -> dict[str, Any]:
        """Return the steps of each running episode, by env."""
        return {
            str(env): {name: torch.from_numpy(array) for name, array in _joined(pieces).items()}
            for env, pieces in self._open.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take them back."""
        self._open = {int(env): [{name: t.numpy() for name, t in steps.items()}] for env, steps in state.items()}

    def _of_env(self, env: int, steps: _Steps, following: Array) -> Iterator[Episode]:
        begin = 0
        pieces = self._open.setdefault(env, [])
        for end in np.flatnonzero(steps["terminated"] | steps["truncated"]).tolist():
            pieces.append({name: column[begin : end + 1] for name, column in steps.items()})
            yield self._episode(env, _joined(pieces), following[end])
            pieces.clear()
            begin = end + 1
        if begin < len(following):  # copies: the tensors of a batch are overwritten by the next one
            pieces.append({name: column[begin:].copy() for name, column in steps.items()})
        if not pieces:
            del self._open[env]

    def _episode(self, env: int, steps: _Steps, last: Array) -> Episode:
        terminated = steps["terminated"].reshape(-1)
        return Episode(
            np.concatenate([steps["observation"], last[np.newaxis]]).astype(self._dtypes["observation"]),
            steps["action"].astype(self._dtypes["action"]),
            steps["reward"].reshape(-1).astype(np.float64),
            terminated,
            steps["truncated"].reshape(-1) & ~terminated,
            infos={} if self._infos is None else self._infos.take(env, len(terminated)),
        )


def _joined(pieces: list[_Steps]) -> _Steps:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in _ENTRIES}
