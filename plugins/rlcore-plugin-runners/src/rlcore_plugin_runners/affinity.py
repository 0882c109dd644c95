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


class AttrDict(dict[str, Any]):
    """A dict whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this dict has no {name!r}; it has {', '.join(self)}") from None


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
    cpu_reserved: int = 0,
    contexts_per_gpu: int = 1,
    sample_gpu_per_run: int = 0,
    optim_sample_share_gpu: bool = False,
    hyperthread_offset: int | None = None,
    n_socket: int | None = None,
) -> Any:
    """Return the `affinity` of one of several runs side by side: its share of the CPUs that this process may use.

    Args:
        run_slot: number of the run, from 0.
        n_cpu_core: cores for all runs; default: those that the process may use.
        n_gpu: GPUs for all runs.
        cpu_per_run: cores of this run; default: all, or with GPUs those of its share of them.
        cpu_per_worker: cores of one worker of the sampler.
        gpu_per_run: GPUs of one run; more than one gives a list, for `SyncRl`.
        async_sample: for `AsyncRl`.
        alternating: for `AlternatingSampler`: two workers on the CPUs of one.
        set_affinity: whether the run binds itself to its CPUs.
        cpu_reserved: cores of each process that trains which its workers leave alone.
        contexts_per_gpu: runs on one GPU.
        sample_gpu_per_run: 0: workers of `AsyncRl` act on the CPU.
        optim_sample_share_gpu: False, likewise.
        hyperthread_offset: what lies between the numbers of the two CPUs of a core; default: each CPU is a core.
        n_socket: sockets, each with as many of the cores in their order; runs are spread over them. Default: 1.

    Returns:
        A dict with `master_cpus`, `workers_cpus`, `cuda_idx`, `master_torch_threads`, `worker_torch_threads` and
        `set_affinity`; a list of them, one for each rank, where a run has several GPUs.

    Raises:
        ConfigError: there are not as many cores, or no such slot; or GPUs that act for workers.
    """
    _check_gpus(gpu_per_run, contexts_per_gpu, bool(sample_gpu_per_run or optim_sample_share_gpu))
    cores = _cores(n_cpu_core, hyperthread_offset or 0, n_socket or 1)
    ranks = gpu_per_run if n_gpu else 1
    slots = n_slots(len(cores), n_gpu, cpu_per_run, ranks, contexts_per_gpu)
    share = cpu_per_run or len(cores) // slots
    if not 0 <= run_slot < slots or share * slots > len(cores) or share // ranks <= cpu_reserved:
        raise ConfigError(
            f"run_slot = {run_slot} of {slots} with {share} cores each, cpu_reserved = {cpu_reserved}: there are "
            f"{len(cores)} cores and {n_gpu} GPUs; slots count from 0"
        )
    own = cores[run_slot * share : (run_slot + 1) * share]
    flags = {"set_affinity": set_affinity, "async_sample": async_sample, "alternating": alternating}
    parts = [_affinity(part, cpu_reserved, cpu_per_worker, flags) for part in _divided(own, ranks)]
    for rank, part in enumerate(parts):
        part["cuda_idx"] = (run_slot * ranks + rank) % n_gpu if n_gpu else None
    return parts[0] if ranks == 1 else parts


def _divided(cores: list[list[int]], count: int) -> list[list[list[int]]]:
    size = len(cores) // count
    return [cores[at * size : (at + 1) * size] for at in range(count)]


def _check_gpus(gpu_per_run: int, contexts_per_gpu: int, acts: bool) -> None:
    if acts:
        raise ConfigError(
            "sample_gpu_per_run, optim_sample_share_gpu: samplers that go on while the learner learns act on the CPU; "
            "leave them out, and take AsyncCpuSampler"
        )
    if gpu_per_run > 1 and contexts_per_gpu > 1:
        raise ConfigError(f"contexts_per_gpu = {contexts_per_gpu}: a run of {gpu_per_run} GPUs shares none of them")


def n_slots(cores: int, n_gpu: int, cpu_per_run: int | None, gpu_per_run: int, contexts_per_gpu: int) -> int:
    """Return how many runs there are side by side."""
    if n_gpu:
        return max(1, n_gpu * contexts_per_gpu // gpu_per_run)
    return max(1, cores // (cpu_per_run or cores))


def _cores(count: int | None, offset: int, sockets: int) -> list[list[int]]:
    """Return the CPUs of so many cores that this process may use, as many of each socket.

    Raises:
        ConfigError: there are fewer.
    """
    cpus = allowed()
    firsts = [cpu for cpu in cpus if not offset or cpu < offset]
    cores = [[cpu, cpu + offset] if offset and cpu + offset in cpus else [cpu] for cpu in firsts]
    count = len(cores) if count is None else count
    if not 1 <= count <= len(cores) or count % sockets:
        raise ConfigError(
            f"n_cpu_core = {count} on {sockets} sockets; this process may use {len(cores)} cores: {firsts}"
        )
    size = len(cores) // sockets
    return [core for at in range(sockets) for core in cores[at * size : at * size + count // sockets]]


def _affinity(
    cores: Sequence[Sequence[int]], reserved: int, cpu_per_worker: int, flags: Mapping[str, bool]
) -> AttrDict:
    free = cores[reserved:]
    groups = [free[at : at + cpu_per_worker] for at in range(0, len(free), cpu_per_worker)]
    workers = [[cpu for core in group for cpu in core] for group in groups]
    workers_cpus = [cpus[0] if len(cpus) == 1 else cpus for cpus in workers]
    return AttrDict(
        master_cpus=[cpu for core in cores for cpu in core],
        workers_cpus=workers_cpus * (2 if flags["alternating"] else 1),
        master_torch_threads=len(cores),
        worker_torch_threads=cpu_per_worker,
        **flags,
    )


def of_one_process(affinity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the affinity of a process that trains, also of one with parts for optimizer and sampler.

    Raises:
        ConfigError: there are several optimizers or samplers on GPUs.
    """
    if "optimizer" not in affinity:
        return dict(affinity)
    optimizers, sampler = affinity["optimizer"], affinity.get("sampler") or {}
    if len(optimizers) != 1 or not isinstance(sampler, Mapping):
        raise ConfigError(
            f"affinity has {len(optimizers)} optimizers; AsyncRl trains in one process, with workers on the CPU: give "
            "it one, and one dict for the sampler"
        )
    optimizer = optimizers[0]
    return {
        **sampler,
        "master_cpus": optimizer.get("cpus"),
        "master_torch_threads": optimizer.get("torch_threads"),
        "cuda_idx": optimizer.get("cuda_idx"),
        "set_affinity": affinity.get("set_affinity", True),
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
