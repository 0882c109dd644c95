"""What a group of learners says of itself: how many there are, and their weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from rlcore_plugin_learners.columns import COMPONENT_LEARNER, COMPONENT_RL_MODULE
from rlcore_plugin_learners.states import Paths

if TYPE_CHECKING:
    from rlcore_plugin_learners.config import AlgorithmConfig
    from rlcore_plugin_learners.learner import Learner
    from rlcore_plugin_learners.remote import RemoteLearners


class GroupShape:
    """Where the learners of a group are, and their weights."""

    config: AlgorithmConfig
    _remote: RemoteLearners | None
    get_state: Callable[..., dict[str, Any]]

    @abstractmethod
    def _each(self, function: Callable[[Learner], Any]) -> list[Any]:
        """Call a function with every learner."""

    def get_weights(self, module_ids: Collection[str] | None = None) -> dict[str, Any]:
        """Return the weights of modules, by id; of all by default."""
        paths: Paths = COMPONENT_RL_MODULE
        if module_ids is not None:
            paths = [f"{COMPONENT_RL_MODULE}/{module_id}" for module_id in module_ids]
        weights: dict[str, Any] = self.get_state(paths)[COMPONENT_LEARNER][COMPONENT_RL_MODULE]
        return weights

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Set the weights of some modules, by id."""
        self._each(methodcaller("set_state", {COMPONENT_RL_MODULE: dict(weights)}))

    def __len__(self) -> int:
        """Return how many other processes learn now."""
        return 0 if self._remote is None else len(self._remote)

    def __bool__(self) -> bool:
        """Return True: a group without other processes is one too."""
        return True

    @property
    def is_local(self) -> bool:
        """Whether the learner is in this process."""
        return not self.config.num_learners

    @property
    def is_remote(self) -> bool:
        """Whether learners are in other processes."""
        return not self.is_local
