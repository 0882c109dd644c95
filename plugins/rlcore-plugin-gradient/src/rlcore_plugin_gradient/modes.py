"""Layers that compute otherwise in training mode than in evaluation mode, such as dropout and batch normalisation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from types import FunctionType
from typing import Any

from torch import nn


def trained_layers(loss: Any) -> tuple[nn.Module, ...]:
    """Return the layers of a loss that go into training mode while it is computed.

    These are the layers in evaluation mode that `loss.train()` would put into training mode, where a method of their
    class reads `training`; those without trained weights beside them, as in target networks, stay as they are.

    Args:
        loss: contains the networks.
    """
    if not isinstance(loss, nn.Module):
        return ()
    evaluating = [module for module in loss.modules() if not module.training]
    loss.train()
    found = [module for module in evaluating if module.training and _has_modes(module)]
    for module in evaluating:
        module.training = False
    frozen = {
        layer
        for network in loss.modules()
        if (weights := list(network.parameters())) and not any(weight.requires_grad for weight in weights)
        for layer in network.modules()
    }
    return tuple(layer for layer in found if layer not in frozen)


@contextmanager
def in_training(layers: Iterable[nn.Module]) -> Iterator[None]:
    """Let layers be in training mode, and in evaluation mode afterwards."""
    for layer in layers:
        layer.training = True
    try:
        yield
    finally:
        for layer in layers:
            layer.training = False


def _has_modes(layer: nn.Module) -> bool:
    if isinstance(layer, nn.RNNBase) and not layer.dropout:
        return False
    own = type(layer).__mro__[: type(layer).__mro__.index(nn.Module)]
    methods = [unwrap(value) for kind in own for value in vars(kind).values() if callable(value)]
    return any(isinstance(method, FunctionType) and "training" in method.__code__.co_names for method in methods)
