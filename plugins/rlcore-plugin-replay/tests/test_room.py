"""A capacity for which no memory is there is refused before the first frame, with what to do."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_replay import room
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_replay.storage import allocate
from rlcore_plugin_testing.memory import resident

from rlcore import Context, EnvSpec
from rlcore.errors import ConfigError, StorageError
from rlcore.types import Progress, RunInfo

GAME = EnvSpec("game", gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8), gymnasium.spaces.Discrete(6), 1, 4)


def buffer_of(steps=50_000_000, **keys):
    """Build the buffer of a run of so many steps of a game, with room for a million of them."""
    context = Context(
        RunInfo("run", 1, total_frames=4 * steps), torch.device("cpu"), Progress(total_frames=4 * steps), kind="buffer"
    )
    context.built["env_spec"] = GAME
    return ReplayBuffer(ReplayBuffer.Config(capacity=1_000_000, **keys), context)


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    monkeypatch.setattr(room, "host_memory", lambda: 16 * 2**30)


def test_a_capacity_beyond_the_memory_of_the_machine_is_refused():
    with pytest.raises(
        ConfigError, match=r"56,448 bytes take 52\.6 GiB, and this machine has 16\.0 GiB; .*stack"
    ) as no:
        buffer_of()
    assert no.value.remedy == {"buffer": {"capacity": 16 * 2**30 // 56_448 // 2}}


@pytest.mark.parametrize("keys", [{"stack": 4}, {"storage": "memmap"}, {"steps": 100_000}])
def test_what_takes_less_is_built(keys):
    assert len(buffer_of(**keys)) == 0


def test_memory_that_others_use_is_told(monkeypatch, caplog):
    """It is taken as rows are written, hours into a run."""
    for free, told in ((64, False), (5, True)):
        monkeypatch.setattr(room, "free_memory", lambda free=free: free * 2**30)
        caplog.clear()
        buffer_of(steps=100_000)
        assert ("take 5.3 GiB, and other programs leave 5.0 GiB now" in caplog.text) == told


def test_the_memory_that_is_free_is_a_part_of_all(monkeypatch):
    monkeypatch.undo()
    free = room.free_memory()
    assert free is None or 0 < free <= room.host_memory()


def test_frames_stored_once_take_room_too(monkeypatch):
    monkeypatch.setattr(room, "host_memory", lambda: 4 * 2**30)
    with pytest.raises(ConfigError, match=r"7,056 bytes take 6\.6 GiB"):
        buffer_of(stack=4)


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    monkeypatch.undo()
    limit = tmp_path / "memory.max"
    for text, memory in (("1048576\n", 1048576), ("max\n", room.host_memory())):
        limit.write_text(text)
        monkeypatch.setattr(room, "_LIMITS", (str(limit),))
        assert room.host_memory() == memory


@pytest.mark.parametrize("kind", ["device", "memory"])
def test_rows_that_are_not_written_take_no_memory(kind):
    """Of 1 GiB; where torch allocates, it aligns, as vector instructions read it."""
    begin = resident()
    rows = allocate(kind, (1 << 17, 1 << 10), torch.device("cpu"), None)
    rows[:1000] = 1
    assert resident() - begin < 64 << 20
    assert rows.data_ptr() % 64 == 0
    assert not rows[-1].any()


@pytest.mark.parametrize("shape", [(1 << 40, 1 << 14), (1 << 50, 1 << 24)])
def test_rows_that_no_address_reaches_are_refused(shape):
    with pytest.raises(StorageError, match=r"Lower \[buffer\] capacity"):
        allocate("memory", shape, torch.device("cpu"), None)
