"""Modules whose weights have memory and no values yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def unfilled(make: Callable[[], Module]) -> Module:
    """Return the module that `make` builds, without sampling its weights: the global generator stays as it is.

    As torch's `to_empty`, which imports torch's compiler.
    """
    with torch.device("meta"):
        built = make()
    for module in built.modules():
        for name, parameter in module.named_parameters(recurse=False):
            memory = torch.empty(parameter.shape, dtype=parameter.dtype, device="cpu")
            module.register_parameter(name, nn.Parameter(memory, parameter.requires_grad))
        for name, buffer in module.named_buffers(recurse=False):
            setattr(module, name, torch.empty(buffer.shape, dtype=buffer.dtype, device="cpu"))
    return built
