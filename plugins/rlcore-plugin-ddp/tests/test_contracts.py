"""The contracts of the plugin, and of groups with shared memory and with gloo."""

import socket
from contextlib import contextmanager

import pytest
from rlcore_plugin_ddp.gloo import GlooGroup
from rlcore_plugin_ddp.meeting import Meeting
from rlcore_plugin_ddp.memory import Memory
from rlcore_plugin_ddp.moving import Moves
from rlcore_plugin_ddp.shared import SharedGroup
from rlcore_plugin_testing.contracts import GroupContract, LauncherContract, PluginContract

from rlcore.process import usable_cores

from .kept_store import kept_store


class TestPlugin(PluginContract):
    plugin = "ddp"


class TestProcesses(LauncherContract):
    use = "ddp:processes"


class TestTorchrun(LauncherContract):
    use = "ddp:torchrun"

    @pytest.fixture(autouse=True)
    def started_by_torchrun(self, request, monkeypatch):
        """Be a process that torchrun started, beside as many as the test has ranks."""
        count = str(request.node.callspec.params["count"] if hasattr(request.node, "callspec") else 2)
        words = {"TORCHELASTIC_RUN_ID": "contract", "TORCHELASTIC_USE_AGENT_STORE": "True"}
        words |= {"MASTER_ADDR": "127.0.0.1", "LOCAL_WORLD_SIZE": count}
        for name, value in words.items():
            monkeypatch.setenv(name, value)
        with kept_store() as port:
            monkeypatch.setenv("MASTER_PORT", str(port))
            yield


class TestTorchrunOfSeveralHosts(TestTorchrun):
    @pytest.fixture(autouse=True)
    def on_hosts_of_their_own(self, started_by_torchrun, monkeypatch):
        """Let each rank be the only one of its host."""
        monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")


class LongGroupContract(GroupContract):
    """The contract, and what takes minutes."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("longest", "times"), [(2_100_000, 30), (4098, 500)])
    def test_long_and_many_sums_have_the_same_bits(self, longest, times):
        self.test_sums_have_the_same_bits_everywhere_and_every_time(longest, times)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(2, 12))
    def test_a_rank_that_is_killed_at_another_moment_is_named(self, seed):
        self.test_a_rank_that_is_killed_at_any_moment_is_named(seed)


class TestShared(LongGroupContract):
    @contextmanager
    def place(self, size, deadline):
        with Memory.create(size) as memory:
            spin = size <= usable_cores()
            yield lambda rank: SharedGroup(Memory(memory.fd, size, 1, rank, deadline, spin))


class TestGlooOfSeveralHosts(LongGroupContract):
    sizes = (1, 2, 3)
    in_order = False
    address = "0100007F"

    @contextmanager
    def place(self, size, deadline):
        with kept_store() as port:

            def enter(rank):
                meeting = Meeting(("127.0.0.1", port, True), rank, size, deadline, coming=3.0)
                generation = meeting.meet()
                moves = Moves(meeting.store, rank, size, generation, deadline)
                return GlooGroup(meeting.store, rank, size, generation, deadline, moves=moves)

            yield enter


class TestGloo(LongGroupContract):
    in_order = False
    address = "0100007F"

    @contextmanager
    def place(self, size, deadline):
        with Memory.create(size) as memory, socket.create_server(("127.0.0.1", 0)) as server:
            port, listener, spin = server.getsockname()[1], server.fileno(), size <= usable_cores()

            def enter(rank):
                if rank:
                    server.close()
                return GlooGroup.on_one_host(Memory(memory.fd, size, 1, rank, deadline, spin), port, listener)

            yield enter
