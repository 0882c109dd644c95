"""The Ray that a process works with: one that runs already, or one of its own on this host."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import math
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field

from rlcore.errors import ConfigError
from rlcore.process import STOPPING, companion
from rlcore.types import FREE_AT_RESUME

log = logging.getLogger(__name__)

LOOPBACK: Final = "127.0.0.1"
_MAJOR: Final = 2
# bytes for objects that actors hand each other, of a Ray that is started here; it takes the disk for more
_OBJECT_STORE: Final = 256 << 20
# seconds between two looks at what a cluster has
_LOOK: Final = 0.5

Resources = dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]]


class PlacementConfig(BaseModel, extra="forbid"):
    """Which Ray it is, and what each actor takes of it."""

    address: str | None = Field(
        None,
        min_length=1,
        description="of a Ray that runs, as HOST:PORT, or 'auto' for that of this host; none: one is started here, and "
        "stopped at the end",
        json_schema_extra=FREE_AT_RESUME,
    )
    num_cpus: float = Field(
        1.0,
        ge=0,
        allow_inf_nan=False,
        description="cores that Ray sets aside for each",
        json_schema_extra=FREE_AT_RESUME,
    )
    num_gpus: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="GPUs that Ray sets aside for each",
        json_schema_extra=FREE_AT_RESUME,
    )
    resources: Resources = Field(
        default_factory=dict,
        description="of your own that each takes, by their names in the cluster",
        json_schema_extra=FREE_AT_RESUME,
    )
    wait: float = Field(
        120.0,
        gt=0,
        allow_inf_nan=False,
        description="seconds in which Ray, and room in it, are waited for",
        json_schema_extra=FREE_AT_RESUME,
    )

    def needs(self, count: int) -> dict[str, float]:
        """Return what so many actors take together, by the names of Ray."""
        each = {"CPU": self.num_cpus, "GPU": self.num_gpus, **self.resources}
        return {name: count * amount for name, amount in each.items() if amount}

    def options(self) -> dict[str, Any]:
        """Return the options with which one actor is made; none is ever restarted or tried again by Ray itself."""
        own = {"num_cpus": self.num_cpus, "num_gpus": self.num_gpus, "resources": self.resources}
        return {**own, "max_restarts": 0, "max_task_retries": 0}


def imported(section: str) -> Any:
    """Return the package `ray`.

    Args:
        section: of the config that needs it, as in `[ranks] use`.

    Raises:
        ConfigError: it is missing, or of another major version; says what to do.
    """
    # read by Ray when it is imported
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # a Ray that is started here lets its workers be as nice as this process; by its default all others come first
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        import ray
    except ImportError as error:
        raise ConfigError(f"{section}: Ray is not installed ({error}); pip install rlcore-plugin-ray") from error
    found = importlib.metadata.version("ray")
    if int(found.partition(".")[0]) != _MAJOR:
        raise ConfigError(f"{section}: Ray {found} is installed, and Ray {_MAJOR} is needed; pip install 'ray<3'")
    return ray


class Session:
    """This process as one that drives Ray.

    Args:
        config: which Ray it is.
        count: of actors that it shall have room for.
        section: of the config, for messages.

    Attributes:
        ray: the package.
        address: of this host, at which the others of the cluster reach it.

    Raises:
        ConfigError: there is no such Ray, or it has no room; says what to do.
    """

    def __init__(self, config: PlacementConfig, count: int, section: str) -> None:
        self.ray = imported(section)
        self._config = config
        self._section = section
        self._folder: str | None = None
        self._helpers: list[int] = []
        self._connected = not self.ray.is_initialized()  # an actor is connected, with what it was made for
        if self._connected:
            _silence(self.ray)
            with _signals_kept():
                self._connect(count)
        try:
            self.address = str(self.ray.util.get_node_ip_address())
            self._check_room(count)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the Ray that runs, or stop the one that was started here."""
        if self._connected:
            self._connected = False
            with _signals_kept():
                self.ray.shutdown()
            for helper in self._helpers:
                companion.forget(helper)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _connect(self, count: int) -> None:
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self._config.address is None:
            self._start(count, settings)
            return
        if "://" in self._config.address:
            raise ConfigError(
                f"{self._section}: address = {self._config.address!r} is that of a client of Ray, which is no node; "
                "run the command on a node of the cluster, with address = 'auto'"
            )
        try:
            self._wait_for_port(self._config.address)
            self.ray.init(address=self._config.address, **settings)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise ConfigError(
                f"{self._section}: no Ray answers at address = {self._config.address!r} within {self._config.wait:g} s "
                f"({_first_line(error)}); start it with `ray start --head`, or leave the key out to have one started "
                "for the run. Where it asks for a token, set RAY_AUTH_MODE=token here too"
            ) from error

    def _wait_for_port(self, address: str) -> None:
        """Wait until something listens where Ray should; Ray itself would be quiet about it for long.

        Raises:
            OSError: nothing does.
        """
        host, _, port = address.rpartition(":")
        until = time.monotonic() + self._config.wait
        while port.isdecimal():
            try:
                socket.create_connection((host, int(port)), timeout=self._config.wait).close()
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(_LOOK)

    def _start(self, count: int, settings: dict[str, Any]) -> None:
        """Start a Ray on this host, for as many actors as there shall be, and on the loopback interface alone."""
        self._folder = tempfile.mkdtemp(prefix="rlcore-ray-", dir="/tmp")  # paths of sockets may not be long
        cores = max(len(os.sched_getaffinity(0)), math.ceil(count * self._config.num_cpus))
        own = {name: amount for name, amount in self._config.needs(count).items() if name not in ("CPU", "GPU")}
        before = _helpers_of(os.getpid())
        self.ray.init(
            address="local",
            num_cpus=cores,
            resources=own or None,
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE,
            _node_ip_address=LOOPBACK,
            _temp_dir=self._folder,
            **settings,
        )
        # most of it ends with this process, however that ends, but for some that do not look
        self._helpers = [helper for helper in _helpers_of(os.getpid()) if helper not in before]
        for helper in self._helpers:
            companion.end_with_this(helper)

    def _check_room(self, count: int) -> None:
        """Wait until the whole cluster has as much as all actors need, whoever uses it now."""
        needs, until = self._config.needs(count), time.monotonic() + self._config.wait
        while missing := _missing(needs, self.ray.cluster_resources()):
            if time.monotonic() > until:
                raise ConfigError(f"{self._section}: {missing}; add nodes, or let each take less")
            time.sleep(_LOOK)


def _missing(needs: dict[str, float], there: dict[str, float]) -> str:
    """Say what is not there; nothing where all is."""
    lines = [
        f"{amount:g} {name} are needed, and the cluster of Ray has {there.get(name, 0):g}"
        for name, amount in needs.items()
        if there.get(name, 0) < amount
    ]
    return "; ".join(lines)


def in_short(error: BaseException) -> str:
    """Return the last line of an error of Ray, which says why, after what it was and where."""
    return str(error).strip().rpartition("\n")[2].strip()[:300]


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _helpers_of(process: int) -> list[int]:
    """Return the processes that one has started, and those that they have, but for the workers that come and go."""
    found = []
    for child in _children(process):
        with contextlib.suppress(OSError):
            if b"ray::IDLE" not in Path(f"/proc/{child}/cmdline").read_bytes():
                found += [child, *_helpers_of(child)]
    return found


def _children(process: int) -> list[int]:
    with contextlib.suppress(OSError):
        lists = Path(f"/proc/{process}/task").glob("*/children")
        return [int(child) for each in lists for child in each.read_text().split()]
    return []


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep what this process does at a signal that stops it; Ray sets handlers of its own when it connects."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # only the main thread may set them, and Ray too
            for number, handler in before.items():
                if signal.getsignal(number) is not handler:
                    signal.signal(number, handler)


def _silence(ray: Any) -> None:
    """Let Ray not write on stdout that an actor died: whoever waits for it says so."""
    worker: Any = getattr(getattr(ray, "_private", None), "worker", None)
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *arguments, **keys: None
