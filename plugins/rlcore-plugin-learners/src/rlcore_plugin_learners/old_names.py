"""Older names of `update`, which scripts for RLlib still have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class OldNames:
    """Updates under older names."""

    update: Callable[..., Any]

    def update_from_batch(self, batch: Any, **kwargs: Any) -> Any:
        """Do what `update` does with a batch, or with several in a list."""
        return self.update(**{"batches" if isinstance(batch, list) else "batch": batch}, **kwargs)

    def update_from_episodes(self, episodes: Any, **kwargs: Any) -> Any:
        """Do what `update` does with episodes."""
        return self.update(episodes=episodes, **kwargs)
