"""The rows of a batch, shared among learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlcore_plugin_learners.batches import MultiBatch
from rlcore_plugin_learners.crew import Order
from rlcore_plugin_learners.serving import update


def shards(
    data: MultiBatch, count: int, timesteps: Mapping[str, int], settings: dict[str, Any], env_steps: int
) -> list[Order]:
    """Return an order of an update for each learner.

    Args:
        data: columns by module; each learner gets as many rows of each, or one more, or none where there are few.
        count: of learners.
        timesteps: clocks.
        settings: further arguments of `Learner.update`.
        env_steps: of the batch.
    """
    orders = []
    for rank in range(count):
        columns = {}
        for module_id, several in data.items():
            start, stop = (rank * several.rows // count, (rank + 1) * several.rows // count)
            if stop > start:
                columns[module_id] = {name: column.numpy() for name, column in several.slice(start, stop).items()}
        steps = (rank + 1) * env_steps // count - rank * env_steps // count
        orders.append(Order(update, (columns, dict(timesteps), settings, steps), together=True))
    return orders
