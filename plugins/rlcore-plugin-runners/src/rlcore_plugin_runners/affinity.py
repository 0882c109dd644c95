"""Which CPUs and GPUs a run takes: of those that the process may use, and of no others."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlcore.errors import ConfigError


def allowed() -> list[int]:
    """Return the CPUs that this process may use; on systems that do not say, one number for each."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def make_affinity(
    run_slot: int = 0,
    n_cpu_core: int | None = None,
    n_gpu: int = 0,
    cpu_per_run: int | None = None,
    cpu_per_worker: int = 1,
    gpu_per_run: int = 1,
    async_sample: bool = False,
    alternating: bool = False,
    set_affinity: bool = True,
) -> Any:
    """Return the `affinity` of one of several runs side by side: its share of the CPUs that this process may use.

    Args:
        run_slot: number of the run, from 0.
        n_cpu_core: CPUs for all runs; default: those that the process may use.
        n_gpu: GPUs for all runs.
        cpu_per_run: CPUs of this run; default: all, or with GPUs those of its share of them.
        cpu_per_worker: CPUs of one worker of the sampler.
        gpu_per_run: GPUs of one run; more than one gives a list, for `SyncRl`.
        async_sample: for `AsyncRl`.
        alternating: for `AlternatingSampler`: two workers on the CPUs of one.
        set_affinity: whether the run binds itself to its CPUs.

    Returns:
        A dict with `master_cpus`, `workers_cpus`, `cuda_idx`, `master_torch_threads`, `worker_torch_threads` and
        `set_affinity`; a list of them, one for each rank, where a run has several GPUs.

    Raises:
        ConfigError: there are not as many CPUs, or no such slot.
    """
    cpus = allowed()
    count = len(cpus) if n_cpu_core is None else n_cpu_core
    if not 1 <= count <= len(cpus):
        raise ConfigError(f"n_cpu_core = {count}; this process may use {len(cpus)} CPUs: {cpus}")
    ranks = gpu_per_run if n_gpu else 1
    slots = max(1, n_gpu // ranks) if n_gpu else max(1, count // (cpu_per_run or count))
    share = cpu_per_run or count // slots
    if not 0 <= run_slot < slots or share * slots > count or share < ranks:
        raise ConfigError(
            f"run_slot = {run_slot} of {slots} with {share} CPUs each: there are {count} CPUs and {n_gpu} GPUs; slots "
            "count from 0"
        )
    own = cpus[run_slot * share : (run_slot + 1) * share]
    size = share // ranks
    parts = [
        _affinity(own[rank * size : (rank + 1) * size], run_slot * ranks + rank if n_gpu else None, cpu_per_worker)
        for rank in range(ranks)
    ]
    for part in parts:
        part["set_affinity"] = set_affinity
        part["async_sample"] = async_sample
        if alternating:
            part["workers_cpus"] = [*part["workers_cpus"], *part["workers_cpus"]]
    return parts[0] if ranks == 1 else parts


def _affinity(cpus: Sequence[int], cuda_idx: int | None, cpu_per_worker: int) -> dict[str, Any]:
    workers = [list(cpus[at : at + cpu_per_worker]) for at in range(0, len(cpus), cpu_per_worker)]
    return {
        "master_cpus": list(cpus),
        "workers_cpus": [group[0] if len(group) == 1 else group for group in workers],
        "cuda_idx": cuda_idx,
        "master_torch_threads": len(cpus),
        "worker_torch_threads": cpu_per_worker,
    }


def cpus_of(affinity: Mapping[str, Any]) -> set[int]:
    """Return the CPUs that an affinity names; empty where the run goes where the system puts it.

    Raises:
        ConfigError: the process may not use one of them.
    """
    if affinity.get("set_affinity", True) is False or affinity.get("master_cpus") is None:
        return set()
    groups = [affinity["master_cpus"], *(affinity.get("workers_cpus") or ())]
    named = {cpu for group in groups for cpu in (group if isinstance(group, Sequence) else [group])}
    refused = named - set(allowed())
    if refused:
        raise ConfigError(
            f"affinity names the CPUs {sorted(refused)}, and this process may use {allowed()}; make_affinity() takes "
            "those, and set_affinity=False leaves the choice to the system"
        )
    return named


@contextlib.contextmanager
def bound(cpus: set[int]) -> Iterator[None]:
    """Bind this process and those that it starts to some CPUs, and release it afterwards; none: leave it as it is."""
    if not cpus or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
