"""A tree of JSON and named tensors as bytes, and back; nothing is pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from rlcore.state import bytes_of

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
        packed += bytes_of(array).data
    return packed


def unpack(packed: bytes) -> tuple[Any, dict[str, Tensor]]:
    """Return the tree and the tensors of such bytes; the tensors are on the CPU, and their own."""
    end = _LENGTH + int.from_bytes(packed[:_LENGTH], "little")
    tree, shapes = json.loads(packed[_LENGTH:end])
    tensors = {}
    for name, dtype, shape in shapes:
        tensors[name] = torch.empty(shape, dtype=getattr(torch, dtype))
        raw = bytes_of(tensors[name])
        if raw.size:
            # by NumPy, as torch warns of bytes that cannot be written to
            raw[:] = np.frombuffer(packed, np.uint8, raw.size, end)
        end += raw.size
    return tree, tensors
