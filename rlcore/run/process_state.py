"""What a run sets for its whole process: CPU threads, memory, deterministic kernels, generators; and its device."""

from __future__ import annotations

import os

import torch

from rlcore.config.core import RunConfig
from rlcore.errors import ConfigError
from rlcore.process.first_calls import make_first_calls
from rlcore.run.freed_memory import keep_freed_memory
from rlcore.state.generators import seed_all


def choose_device(name: str) -> torch.device:
    """Return the device that `[run] device` names.

    Raises:
        ConfigError: there is no such device here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise ConfigError(f"[run] device = {name!r}: torch sees {count} CUDA devices; use 'auto' or 'cpu'")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigError(f"[run] device = {name!r}: torch sees no Apple GPU; use 'auto' or 'cpu'")
    return device


def prepare_process(run: RunConfig) -> None:
    """Set threads, memory, determinism and seeds, before anything of the run is built."""
    make_first_calls()  # an operation on many numbers is computed by all threads, the first one too
    torch.set_num_threads(run.threads)
    keep_freed_memory()
    if run.deterministic:
        # cuBLAS repeats only with a workspace of fixed size, and reads this when its first handle is made
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    seed_all(run.seed)
