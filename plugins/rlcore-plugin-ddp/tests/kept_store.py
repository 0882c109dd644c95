"""A store that a process of its own keeps, as torchrun's agent does.

torch's server looks up the names of who connects, in a thread. A process that is forked in that moment would have the
lock of the system's resolver, and nobody who releases it; so what forks ranks keeps no store itself.
"""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch.distributed


@contextmanager
def kept_store() -> Iterator[int]:
    """Keep a store on this host, and yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port, parent = server.getsockname()[1], os.getpid()
        keeper = os.fork()
        if keeper == 0:
            _keep(server, parent)
    try:
        yield port
    finally:
        os.kill(keeper, signal.SIGKILL)
        os.waitpid(keeper, 0)


def _keep(server: socket.socket, parent: int) -> None:
    """Keep the store until this process is killed, or its parent is gone."""
    try:
        port = server.getsockname()[1]
        store = torch.distributed.TCPStore(
            "127.0.0.1", port, None, True, timedelta(seconds=30), False, master_listen_fd=server.detach()
        )
        while os.getppid() == parent:
            time.sleep(0.2)
        del store
    finally:
        os._exit(0)
