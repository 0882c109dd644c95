"""Whether there is memory for the rows that a run will write, asked before the first of them."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Final

import torch

from rlcore.errors import ConfigError

log = logging.getLogger(__name__)

# a container may have less than its machine: the limits of both versions of cgroups
_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def host_memory() -> int | None:
    """Return the bytes of memory that this process may use; None where the system does not say."""
    if not hasattr(os, "sysconf") or not {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(os.sysconf_names):
        return None
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    texts = [Path(limit).read_text(encoding="ascii").strip() for limit in _LIMITS if Path(limit).exists()]
    return min([memory, *(int(text) for text in texts if text.isdigit())])


def free_memory() -> int | None:
    """Return the bytes of memory that other programs leave to this process; None where the system does not say."""
    meminfo, memory = Path("/proc/meminfo"), host_memory()
    available = re.search(r"MemAvailable: *(\d+) kB", meminfo.read_text(encoding="ascii") if meminfo.exists() else "")
    return None if available is None or memory is None else min(int(available[1]) << 10, memory)


def check_room(capacity: int, rows: int, row_bytes: int, device: torch.device, hint: str = "") -> None:
    """Refuse rows for which there is no memory, before the first of them is there; warn where it is in use now.

    Args:
        capacity: number of rows; a device has room for all of them at once.
        rows: how many of them the run will write; the host takes memory when they are written.
        row_bytes: that a row takes at least.
        device: of the rows.
        hint: what else can be done.

    Raises:
        ConfigError: they are more than the whole memory of the device.
    """
    if device.type == "cpu":
        count, total, place = min(capacity, rows), host_memory(), "this machine"
    else:
        tell = getattr(torch.get_device_module(device), "mem_get_info", None)
        count, total, place = capacity, None if tell is None else tell(device)[1], str(device)
    elsewhere = '"memmap"' if device.type == "cpu" else '"memory" or "memmap"'
    advice = f"{hint}or keep rows elsewhere with storage = {elsewhere}"
    needed = f"[buffer] capacity = {capacity:,}: rows of at least {row_bytes:,} bytes take {_gib(count * row_bytes)}"
    if total is not None and count * row_bytes > total:
        raise ConfigError(
            f"{needed}, and {place} has {_gib(total)}; lower it to at most {total // row_bytes:,}, {advice}",
            # half of the memory is for everything else
            remedy={"buffer": {"capacity": total // row_bytes // 2}},
        )
    free = free_memory() if device.type == "cpu" else None
    if free is not None and count * row_bytes > free:
        log.warning(
            "%s, and other programs leave %s now; once that is full, the system ends the run. Lower it, %s",
            needed,
            _gib(free),
            advice,
        )


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
