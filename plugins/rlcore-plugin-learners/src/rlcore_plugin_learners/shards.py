"""The rows of a batch, shared among learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlcore_plugin_learners.batches import MultiBatch
from rlcore_plugin_learners.crew import Order
from rlcore_plugin_learners.serving import update


def shards(data: MultiBatch, count: int) -> list[MultiBatch]:
    """Return the columns by module of each learner: as many rows of each, or one more, or none where there are few."""
    several: list[MultiBatch] = [{} for _ in range(count)]
    for rank, own in enumerate(several):
        for module_id, columns in data.items():
            start, stop = (rank * columns.rows // count, (rank + 1) * columns.rows // count)
            if stop > start:
                own[module_id] = columns.slice(start, stop)
    return several


def orders_of(
    several: Sequence[MultiBatch], timesteps: Mapping[str, int], settings: dict[str, Any], env_steps: int
) -> list[Order]:
    """Return an order of an update for each learner.

    Args:
        several: columns by module of each learner.
        timesteps: clocks.
        settings: further arguments of `Learner.update`.
        env_steps: of all of them.
    """
    orders, count = [], len(several)
    for rank, data in enumerate(several):
        arrays = {
            module_id: {name: column.numpy() for name, column in columns.items()} for module_id, columns in data.items()
        }
        steps = (rank + 1) * env_steps // count - rank * env_steps // count
        orders.append(Order(update, (arrays, dict(timesteps), settings, steps), together=True))
    return orders
