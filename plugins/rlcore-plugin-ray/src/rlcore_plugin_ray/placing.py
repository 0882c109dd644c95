"""Actors on their way: waited for until each has a place, and refused where another version is installed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError
from rlcore_plugin_ray.session import in_short

if TYPE_CHECKING:
    from rlcore_plugin_ray.actor import Arrival

# seconds between two looks at whether actors have a place
_LOOK: Final = 0.1


def arrived(
    ray: Any, references: list[Any], wait: float, section: str, what: str, waiting: Callable[[], None] = lambda: None
) -> list[Arrival]:
    """Wait until every actor has a place, and return what each says of it.

    Args:
        ray: the package.
        references: of the arrivals.
        wait: seconds in which room is waited for.
        section: of the config, for messages.
        what: each of them is.
        waiting: called again and again meanwhile.

    Raises:
        ConfigError: Ray finds no room for them, or something else is installed where they are.
    """
    until = time.monotonic() + wait
    missing = references
    while missing:
        waiting()
        _, missing = ray.wait(references, num_returns=len(references), timeout=_LOOK)
        if missing and time.monotonic() > until:
            raise ConfigError(
                f"{section}: {len(missing)} of {len(references)} {what}s found no place in Ray within {wait:g} s; free "
                f"of it are {_free(ray)}; see `ray status`"
            )
    try:
        arrivals: list[Arrival] = list(ray.get(references))
    except ray.exceptions.RayError as error:
        raise ConfigError(f"{section}: an actor of Ray cannot be a {what}: {in_short(error)}") from error
    _check_versions(arrivals, section, what)
    return arrivals


def kill(ray: Any, actors: Sequence[Any], arrivals: Sequence[Arrival]) -> None:
    """End actors at once, those on this host also where they were stopped and do not hear Ray."""
    for actor in actors:
        ray.kill(actor, no_restart=True)
    for arrival in arrivals:
        if arrival.reaches_memory:
            with suppress(ProcessLookupError):
                os.kill(arrival.process, signal.SIGKILL)


def _check_versions(arrivals: Sequence[Arrival], section: str, what: str) -> None:
    """Refuse hosts on which other versions are installed.

    Raises:
        ConfigError: names one.
    """
    from rlcore_plugin_ray.actor import versions

    own = versions()
    for rank, arrival in enumerate(arrivals):
        for name, version in own.items():
            if arrival.versions[name] != version:
                raise ConfigError(
                    f"{section}: {what} {rank} on host {arrival.host} has {name} {arrival.versions[name]}, and "
                    f"{version} is here; install the same on all nodes"
                )


def _free(ray: Any) -> str:
    there = ray.available_resources()
    return ", ".join(f"{there[name]:g} {name}" for name in sorted(there) if ":" not in name and "memory" not in name)
