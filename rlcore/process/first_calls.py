"""The first calls of the mathematical functions of torch, made before several threads compute.

On x86, torch computes square roots, exponentials and the like by Intel's MKL, which chooses its kernels at the first
call in a process. Where two threads make that call at once, one may read a choice that is half made, and its results
are wrong: in the last bit of an exponential, in the fourth digit of a square root. Later calls are right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import torch
from torch import Tensor

# in MKL the first call of one settles all, as far as is known; in another library each may have a choice of its own
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
    """Call each function once in this process; to be called before the first thread that computes."""
    half = torch.full((1,), 0.5, device="cpu")  # a script may have set another default device
    for function in _FUNCTIONS:
        function(half)
