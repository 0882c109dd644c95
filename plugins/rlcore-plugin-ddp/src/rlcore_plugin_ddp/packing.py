"""A tree of JSON and named tensors as bytes, and back; nothing is pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

_LENGTH: Final = 8


def pack(tree: Any, tensors: Mapping[str, Tensor]) -> bytearray:
    """Return them as bytes.

    Args:
        tree: of what JSON knows, not-a-number and infinity among it.
        tensors: of any device, by name.
    """
    arrays = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    shapes = [(name, str(array.dtype).removeprefix("torch."), list(array.shape)) for name, array in arrays.items()]
    head = json.dumps([tree, shapes]).encode()
    packed = bytearray(len(head).to_bytes(_LENGTH, "little") + head)
    for array in arrays.values():
        # not reshape: one number may keep a stride of 0, of which torch makes no bytes
        packed += array.as_strided((array.numel(),), (1,)).view(torch.uint8).numpy().data
    return packed


def unpack(packed: bytes) -> tuple[Any, dict[str, Tensor]]:
    """Return the tree and the tensors of such bytes; the tensors are on the CPU, and their own."""
    end = _LENGTH + int.from_bytes(packed[:_LENGTH], "little")
    tree, shapes = json.loads(packed[_LENGTH:end])
    tensors = {}
    for name, dtype, shape in shapes:
        tensors[name] = torch.empty(shape, dtype=getattr(torch, dtype))
        raw = tensors[name].view(-1).view(torch.uint8)
        if raw.numel():
            # by NumPy, as torch warns of bytes that cannot be written to
            raw.numpy()[:] = np.frombuffer(packed, np.uint8, raw.numel(), end)
        end += raw.numel()
    return tree, tensors
