"""Numbers that another implementation made once, which a test compares with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def double_arrays(path: Path) -> dict[str, Tensor]:
    """Return the arrays of an npz file by name; what are no whole numbers are in double precision."""
    with np.load(path) as arrays:
        tensors = {name: torch.from_numpy(arrays[name]) for name in arrays}
    return {name: value.double() if value.is_floating_point() else value for name, value in tensors.items()}


def under(arrays: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the arrays with names below a prefix, and their names without it."""
    return {name[len(prefix) + 1 :]: value for name, value in arrays.items() if name.startswith(f"{prefix}/")}
