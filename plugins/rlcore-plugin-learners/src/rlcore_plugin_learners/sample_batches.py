"""Batches as RLlib's scripts write them: columns that know their rows, of one module or of several."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from typing import Any

from rlcore_plugin_learners.columns import DEFAULT_MODULE_ID, Columns

ModuleID = str
TensorType = Any


class SampleBatch(Columns, dict[str, Any]):
    """Columns by name, each `[row, ...]`; its length is the number of rows. It has the names of columns too."""

    CUR_OBS = Columns.OBS

    def __len__(self) -> int:
        return len(next(iter(self.values()))) if self.keys() else 0

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self)

    def env_steps(self) -> int:
        """Return how many rows there are."""
        return len(self)

    def agent_steps(self) -> int:
        """Return how many rows there are."""
        return len(self)

    def slice(self, start: int, end: int) -> SampleBatch:
        """Return some of the rows."""
        return SampleBatch({name: column[start:end] for name, column in self.items()})

    def copy(self) -> SampleBatch:
        """Return another one with the same columns."""
        return SampleBatch(self.items())

    def as_multi_agent(self, module_id: str | None = None) -> MultiAgentBatch:
        """Return these rows as those of a module, `default_policy` unless it is said."""
        return MultiAgentBatch({module_id or DEFAULT_MODULE_ID: self}, len(self))


class MultiAgentBatch:
    """Columns of several modules.

    Args:
        policy_batches: columns by the id of their module.
        env_steps: how many steps of envs they are of.

    Attributes:
        policy_batches: as given.
        count: `env_steps`.
    """

    def __init__(self, policy_batches: Mapping[str, Mapping[str, Any]], env_steps: int) -> None:
        self.policy_batches = dict(policy_batches)
        self.count = env_steps

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, module_id: str) -> Mapping[str, Any]:
        return self.policy_batches[module_id]

    def items(self) -> ItemsView[str, Mapping[str, Any]]:
        """Return ids and columns."""
        return self.policy_batches.items()

    def env_steps(self) -> int:
        """Return how many steps of envs the rows are of."""
        return self.count

    def agent_steps(self) -> int:
        """Return how many rows all modules have."""
        return sum(len(next(iter(columns.values()), ())) for columns in self.policy_batches.values())

    def as_multi_agent(self) -> MultiAgentBatch:
        """Return itself."""
        return self
