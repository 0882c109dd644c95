"""Forks while other threads run: the child lacks these threads, and locks that they hold are held in it for ever."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from rlcore import ConfigError

if TYPE_CHECKING:
    from rlcore.types import Env


@cache
def wait_for_torch() -> None:
    """Let every fork of this process wait until no thread seeds torch, so that the child may do so.

    `torch.manual_seed` takes a lock of torch.cuda also where there is no GPU. The fork takes it too, and gives it back
    on both sides. Where this version of torch has no such lock, or the system no forks, nothing is done.
    """
    lock: Any = getattr(torch.cuda, "_initialization_lock", None)
    if hasattr(os, "register_at_fork") and hasattr(lock, "acquire"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def check_fork(start_method: str, env: Env) -> None:
    """Refuse to fork a process in which an env has threads that a worker would wait for.

    Args:
        start_method: of `multiprocessing`.
        env: of this process; its attribute `unforkable` says why, where it has one.

    Raises:
        ConfigError: the workers would be forked, and the env cannot bear it.
    """
    why = getattr(env, "unforkable", None)
    if start_method == "fork" and why:
        raise ConfigError(
            f"[collector] start_method = 'fork': the envs {env.spec.id!r} cannot step in a forked process, as {why}; "
            "write 'forkserver' or 'spawn'"
        )
