"""Forks while other threads use torch: a lock that one of them holds would be held in the child for ever."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch


@cache
def wait_for_torch() -> None:
    """Let every fork of this process wait until no thread seeds torch, so that the child may do so.

    `torch.manual_seed` takes a lock of torch.cuda also where there is no GPU. The fork takes it too, and gives it back
    on both sides. Where this version of torch has no such lock, or the system no forks, nothing is done.
    """
    lock: Any = getattr(torch.cuda, "_initialization_lock", None)
    if hasattr(os, "register_at_fork") and hasattr(lock, "acquire"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
