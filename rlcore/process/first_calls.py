"""The first calls of torch's mathematics on the CPU, made before two threads can make them at once.

On x86, torch leaves square roots, exponentials and their like to Intel's MKL, which chooses its kernels at the first
call of a process. Where two threads make that call together, one of them may read a choice that is half made, and its
results are off: by the last bit of an exponential, in the fourth digit of a square root. Later calls are right, so that
nothing shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import torch
from torch import Tensor

# one that is called settles the others too, as far as is known; each is named for a library where it does not
_FUNCTIONS: Final[tuple[Callable[[Tensor], Tensor], ...]] = (
    torch.sqrt,
    torch.exp,
    torch.log,
    torch.tanh,
    torch.erf,
    torch.erfinv,
    torch.sin,
    torch.cos,
    torch.tan,
    torch.asin,
    torch.acos,
    torch.atan,
)


@lru_cache(maxsize=1)
def make_first_calls() -> None:
    """Call each of them once in a process, in the thread that asks; threads that compute are to be started after it."""
    half = torch.full((1,), 0.5, device="cpu")  # whatever a script made the default device
    for function in _FUNCTIONS:
        function(half)
