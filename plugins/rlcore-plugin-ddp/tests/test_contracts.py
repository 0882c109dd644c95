"""The contracts of the plugin, and of groups with shared memory and with gloo."""

import socket
from contextlib import contextmanager

from rlcore_plugin_ddp.gloo import GlooGroup
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_ddp.shared import SharedGroup

from rlcore.process import usable_cores
from rlcore.testing.contracts import GroupContract, LauncherContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "ddp"


class TestProcesses(LauncherContract):
    use = "ddp:processes"


class TestShared(GroupContract):
    @contextmanager
    def place(self, size, deadline):
        with Memory.create(size) as memory:
            spin = size <= usable_cores()
            yield lambda rank: SharedGroup(Memory(memory.fd, size, 1, rank, deadline, spin))


class TestGloo(GroupContract):
    in_order = False
    address = "0100007F"

    @contextmanager
    def place(self, size, deadline):
        with Memory.create(size) as memory, socket.create_server(("127.0.0.1", 0)) as server:
            port, listener = server.getsockname()[1], server.fileno()

            def enter(rank):
                if rank:
                    server.close()
                return GlooGroup.on_one_host(Memory(memory.fd, size, 1, rank, deadline), port, listener)

            yield enter
