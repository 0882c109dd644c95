"""Which components start over with another one, because their state means nothing without its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import nn

from rlcore.restore.optimizers import optimizer_of
from rlcore.types.hook_parts import HookObject
from rlcore.types.part import with_defaults


def dependents(components: Mapping[str, Any], fresh: Collection[str]) -> dict[str, str]:
    """Return the components that start over with those in `fresh`, each with the one that it follows.

    An optimizer follows the modules whose parameters it moves: its moments are of their gradients. A module follows one
    with which it shares parameters, and a scheduler of torch the optimizer whose numbers it sets.

    Args:
        components: name to what takes part in checkpoints.
        fresh: names of those that start over.
    """
    following: dict[str, str] = {}
    waiting = [name for name in fresh if name in components]
    while waiting:
        source = waiting.pop(0)
        for name, component in components.items():
            if name not in fresh and name not in following and _follows(component, components[source]):
                following[name] = source
                waiting.append(name)
    return following


def _follows(component: Any, source: Any) -> bool:
    if isinstance(source, nn.Module):
        own = {id(parameter) for parameter in source.parameters()}
        return any(id(parameter) in own for parameter in _parameters(component))
    optimizer = _optimizer(source)
    return optimizer is not None and (_optimizer(component) is optimizer or _scheduled(component) is optimizer)


def _parameters(component: Any) -> list[Any]:
    if isinstance(component, nn.Module):
        return list(component.parameters())
    optimizer = _optimizer(component)
    return [] if optimizer is None else [p for group in optimizer.param_groups for p in group["params"]]


def _optimizer(component: Any) -> torch.optim.Optimizer | None:
    """Return the optimizer whose state a component saves: itself, or that of a hook."""
    if isinstance(component, torch.optim.lr_scheduler.LRScheduler):
        return None
    if isinstance(component, torch.optim.Optimizer):  # first, as it may have another one inside
        return component
    optimizer = optimizer_of(component)
    return optimizer if isinstance(optimizer, torch.optim.Optimizer) else None


def _scheduled(component: Any) -> Any:
    """Return the optimizer whose numbers a scheduler of torch sets: the component itself, or that of a hook."""
    scheduler = with_defaults(component, HookObject).scheduler or component
    return scheduler.optimizer if isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler) else None
