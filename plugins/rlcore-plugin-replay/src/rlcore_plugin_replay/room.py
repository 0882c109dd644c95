"""Whether there is memory for the rows that a run will write, asked before the first of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import torch

from rlcore.errors import ConfigError

# a container may have less than its machine: the limits of both versions of cgroups
_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def host_memory() -> int | None:
    """Return the bytes of memory that this process may use; None where the system does not say."""
    if not hasattr(os, "sysconf") or not {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(os.sysconf_names):
        return None
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    texts = [Path(limit).read_text(encoding="ascii").strip() for limit in _LIMITS if Path(limit).exists()]
    return min([memory, *(int(text) for text in texts if text.isdigit())])


def check_room(capacity: int, rows: int, row_bytes: int, device: torch.device, hint: str = "") -> None:
    """Refuse rows for which there is no memory, before the first of them is there.

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
    if total is None or count * row_bytes <= total:
        return
    elsewhere = '"memmap"' if device.type == "cpu" else '"memory" or "memmap"'
    raise ConfigError(
        f"[buffer] capacity = {capacity:,}: rows of at least {row_bytes:,} bytes take "
        f"{count * row_bytes / 2**30:,.1f} GiB, and {place} has {total / 2**30:,.1f} GiB; lower it to at most "
        f"{total // row_bytes:,}, {hint}or keep rows elsewhere with storage = {elsewhere}",
        # half of the memory is for everything else
        remedy={"buffer": {"capacity": total // row_bytes // 2}},
    )
