"""Affinities as one word of a command line, which a launcher hands to each of the runs that it starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import torch

from rlcore.errors import ConfigError
from rlcore_plugin_runners.affinity import allowed, make_affinity, n_slots

# of an argument of make_affinity, the three letters behind its number
_LETTERS: Final = {
    "run_slot": "slt",
    "n_cpu_core": "cpu",
    "n_gpu": "gpu",
    "contexts_per_gpu": "cxg",
    "gpu_per_run": "gpr",
    "cpu_per_run": "cpr",
    "cpu_per_worker": "cpw",
    "hyperthread_offset": "hto",
    "n_socket": "skt",
    "cpu_reserved": "res",
    "async_sample": "ass",
    "sample_gpu_per_run": "sgr",
    "optim_sample_share_gpu": "oss",
    "alternating": "alt",
    "set_affinity": "saf",
}
_NAMES: Final = {letters: name for name, letters in _LETTERS.items()}
_FLAGS: Final = ("async_sample", "optim_sample_share_gpu", "alternating", "set_affinity")


def encode_affinity(n_cpu_core: int = 1, n_gpu: int = 0, **arguments: Any) -> str:
    """Return the code of arguments of `make_affinity`, such as `2cpu_0gpu_1cpr`.

    Args:
        n_cpu_core: cores for all runs.
        n_gpu: GPUs for all runs.
        arguments: the others; without GPUs `cpu_per_run` is 1 unless it is said.

    Raises:
        ConfigError: there is no such argument.
    """
    unknown = [name for name in arguments if name not in _LETTERS]
    if unknown:
        raise ConfigError(f"encode_affinity has no {', '.join(unknown)}; it has {', '.join(_LETTERS)}")
    if not n_gpu:
        arguments.setdefault("cpu_per_run", 1)
    values = {"n_cpu_core": n_cpu_core, "n_gpu": n_gpu, **arguments}
    said = {name: int(values[name]) for name in _LETTERS if values.get(name) is not None}
    return "_".join(f"{value}{_LETTERS[name]}" for name, value in said.items())


def decode_affinity(affinity_code: str) -> dict[str, Any]:
    """Return the arguments that a code says.

    Raises:
        ConfigError: it is none.
    """
    arguments: dict[str, Any] = {}
    for part in affinity_code.split("_"):
        match = re.fullmatch(r"(\d+)([a-z]{3})", part)
        if match is None or match[2] not in _NAMES:
            raise ConfigError(
                f"affinity code {affinity_code!r}: {part!r} is no number with one of {', '.join(_NAMES)} behind it"
            )
        name = _NAMES[match[2]]
        arguments[name] = bool(int(match[1])) if name in _FLAGS else int(match[1])
    return arguments


def prepend_run_slot(run_slot: int, affinity_code: str) -> str:
    """Return the code of one of the runs."""
    return f"{run_slot}{_LETTERS['run_slot']}_{affinity_code}"


def affinity_from_code(run_slot_affinity_code: str) -> Any:
    """Return the `affinity` that a code with a slot says, as `make_affinity` does."""
    return make_affinity(**decode_affinity(run_slot_affinity_code))


def get_n_run_slots(affinity_code: str) -> int:
    """Return how many runs a code lets go side by side."""
    said: Mapping[str, Any] = decode_affinity(affinity_code)
    gpus, ranks = said.get("n_gpu", 0), said.get("gpu_per_run", 1)
    return n_slots(said["n_cpu_core"], gpus, said.get("cpu_per_run"), ranks, said.get("contexts_per_gpu", 1))


def quick_affinity_code(n_parallel: int | None = None, use_gpu: bool = True) -> str:
    """Return the code that shares this machine between so many runs.

    Args:
        n_parallel: runs side by side; default: one on each GPU.
        use_gpu: whether they have a GPU each, where there are GPUs.

    Raises:
        ConfigError: without GPUs, `n_parallel` is needed.
    """
    cores, gpus = len(allowed()), torch.cuda.device_count() if use_gpu else 0
    if not gpus and not n_parallel:
        raise ConfigError("quick_affinity_code: there are no GPUs here; say n_parallel, how many runs go side by side")
    runs = min(n_parallel or gpus, gpus or cores)
    shared = {"n_cpu_core": cores // runs * runs, "n_gpu": runs if gpus else 0}
    return encode_affinity(**shared, cpu_per_run=None if gpus else cores // runs)
