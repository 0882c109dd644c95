"""Hashes of states: that of a tensor, and that of all components which training depends on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import xxhash
from torch import Tensor

from rlcore.state.memory import bytes_of, pieces


def add_tensor(digest: xxhash.xxh3_128, name: str, tensor: Tensor) -> None:
    """Take the name, the type, the shape and the elements of a tensor into a hash."""
    digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    for piece in pieces(bytes_of(plain)):
        digest.update(piece)


def training_digest(digests: Mapping[str, str], observers: Iterable[str]) -> str:
    """Return one hash over the components that training depends on.

    Args:
        digests: component name to hash.
        observers: the components that watch a run and do not change it: loggers, metrics, progress bars.
    """
    left_out = set(observers)
    of_training = {name: digest for name, digest in sorted(digests.items()) if name not in left_out}
    return xxhash.xxh3_128_hexdigest(json.dumps(of_training).encode())
