"""Buffers of TorchRL go on after a resume as if nothing had been, through every checkpoint back end."""

from __future__ import annotations

import copy
import importlib
from typing import NamedTuple

import numpy as np
import pytest
import torch
from tensordict import TensorDict, is_tensor_collection, tensorclass

pytest.importorskip("torchrl")

from rlcore_plugin_testing import difference
from torchrl.data import (
    CompressedListStorage,
    HERReplayBuffer,
    LazyMemmapStorage,
    LazyStackStorage,
    LazyTensorStorage,
    ListStorage,
    OfflineToOnlineReplayBuffer,
    ReplayBuffer,
    ReplayBufferEnsemble,
    TensorDictMaxValueWriter,
    TensorDictPrioritizedReplayBuffer,
    TensorDictReplayBuffer,
    TensorStorage,
)
from torchrl.data.replay_buffers.samplers import (
    ConsumingSampler,
    PrioritizedSampler,
    PrioritizedSliceSampler,
    RandomSampler,
    SamplerWithoutReplacement,
    SliceSampler,
    SliceSamplerWithoutReplacement,
    StalenessAwareSampler,
    StreamingSliceSampler,
)
from torchrl.data.replay_buffers.writers import ImmutableDatasetWriter, RoundRobinWriter, TensorDictRoundRobinWriter
from torchrl.envs.transforms import CatTensors, Compose

import rlcore
from rlcore import ReplayBufferTrainer
from rlcore.errors import StorageError

try:
    importlib.import_module("torchrl._torchrl")
    COMPILED = True
except ImportError:
    COMPILED = False
needs_trees = pytest.mark.skipif(not COMPILED, reason="the installed torchrl was compiled for another torch")


def a_batch(number, size=12):
    generator = torch.Generator().manual_seed(number)
    steps = torch.arange(size)
    return TensorDict(
        {
            "observation": torch.randn(size, 3, generator=generator),
            "next": {
                "desired_goal": torch.zeros(size, 2),
                "achieved_goal": torch.randn(size, 2, generator=generator),
                "reward": torch.randn(size, 1, generator=generator),
                "done": (steps % 4 == 3)[:, None],
                "terminated": (steps % 4 == 3)[:, None],
                "truncated": torch.zeros(size, 1, dtype=torch.bool),
            },
            "trajectory": number * 100 + steps // 4,
            "policy_version": torch.full((size,), number),
            "desired_goal": torch.zeros(size, 2),
            "achieved_goal": torch.randn(size, 2, generator=generator),
        },
        batch_size=[size],
    )


def flat(storage=None, sampler=None, writer=None, **arguments):
    kinds = {} if writer is None else {"writer": writer}
    return TensorDictReplayBuffer(
        storage=LazyTensorStorage(40) if storage is None else storage,
        sampler=RandomSampler() if sampler is None else sampler,
        batch_size=arguments.pop("batch_size", 8),
        **kinds,
        **arguments,
    )


def prioritized(**arguments):
    return PrioritizedSampler(40, alpha=0.7, beta=0.5, **arguments)


def two_buffers(kind):
    first = TensorDictReplayBuffer(storage=kind(20), sampler=RandomSampler(), batch_size=8)
    second = TensorDictReplayBuffer(storage=kind(30), sampler=SamplerWithoutReplacement(), batch_size=8)
    return ReplayBufferEnsemble(first, second, p=[0.3, 0.7], sample_from_all=False, batch_size=8)


def dataset():
    return flat(TensorStorage(a_batch(77, size=24)), SamplerWithoutReplacement(), ImmutableDatasetWriter())


def at_version(version, buffer):
    buffer.sampler.consumer_version = version
    return buffer


def hindsight_reward(batch):
    return (batch["next", "achieved_goal"] - batch["next", "desired_goal"]).norm(dim=-1, keepdim=True)


def seeded(buffer):
    buffer.set_rng(torch.Generator().manual_seed(9))
    return buffer


BUFFERS = {
    "tensor": lambda: flat(),
    "memmap": lambda: flat(LazyMemmapStorage(40)),
    "list": lambda: flat(ListStorage(40)),
    "stack": lambda: flat(LazyStackStorage(40)),
    "compressed": lambda: flat(CompressedListStorage(40)),
    "plain": lambda: ReplayBuffer(storage=LazyTensorStorage(40), sampler=RandomSampler(), batch_size=8),
    "plain-list": lambda: ReplayBuffer(storage=ListStorage(40), batch_size=8, collate_fn=torch.stack),
    "two-dimensions": lambda: flat(LazyTensorStorage(50, ndim=2)),
    "two-dimensions-memmap": lambda: flat(LazyMemmapStorage(50, ndim=2)),
    "without-replacement": lambda: flat(sampler=SamplerWithoutReplacement()),
    "without-replacement-drop-last": lambda: flat(sampler=SamplerWithoutReplacement(drop_last=True), batch_size=7),
    "without-replacement-list": lambda: flat(ListStorage(40), SamplerWithoutReplacement()),
    "consuming": lambda: flat(sampler=ConsumingSampler(), batch_size=4),
    "slices": lambda: flat(sampler=SliceSampler(slice_len=4, traj_key="trajectory", strict_length=False)),
    "slices-cached": lambda: flat(sampler=SliceSampler(num_slices=2, end_key=("next", "done"), cache_values=True)),
    "slices-without-replacement": lambda: flat(
        sampler=SliceSamplerWithoutReplacement(num_slices=2, traj_key="trajectory", strict_length=False)
    ),
    "streaming-slices": lambda: flat(sampler=StreamingSliceSampler(slice_len=2, traj_key="trajectory"), batch_size=4),
    "two-dimensions-slices": lambda: flat(
        LazyTensorStorage(50, ndim=2), SliceSampler(num_slices=2, end_key=("next", "done"), strict_length=False)
    ),
    "staleness": lambda: at_version(20, flat(sampler=StalenessAwareSampler(max_staleness=50))),
    "hindsight": lambda: HERReplayBuffer(hindsight_reward, storage=LazyTensorStorage(40), batch_size=8),
    "transform": lambda: flat(transform=Compose(CatTensors(["observation", "desired_goal"], "both"))),
    "round-robin": lambda: ReplayBuffer(storage=LazyTensorStorage(40), writer=RoundRobinWriter(), batch_size=8),
    "generations": lambda: flat(writer=TensorDictRoundRobinWriter(track_generations=True)),
    "max-value": lambda: flat(writer=TensorDictMaxValueWriter(rank_key=("next", "reward"))),
    "max-value-memmap": lambda: flat(LazyMemmapStorage(40), writer=TensorDictMaxValueWriter()),
    "own-generator": lambda: seeded(flat()),
    "prefetch": lambda: seeded(flat(sampler=SamplerWithoutReplacement(), prefetch=1)),
    "dataset": dataset,
    "ensemble": lambda: two_buffers(LazyTensorStorage),
    "ensemble-of-memmaps": lambda: two_buffers(LazyMemmapStorage),
    "offline-to-online": lambda: OfflineToOnlineReplayBuffer(
        ReplayBuffer(storage=TensorStorage(a_batch(77, 24)), sampler=SamplerWithoutReplacement(), batch_size=8),
        online_capacity=40,
        batch_size=8,
    ),
    "prioritized": pytest.param(lambda: flat(sampler=prioritized()), marks=needs_trees),
    "prioritized-within-buffer": pytest.param(
        lambda: flat(sampler=prioritized(max_priority_within_buffer=True)), marks=needs_trees
    ),
    "prioritized-memmap": pytest.param(lambda: flat(LazyMemmapStorage(40), prioritized()), marks=needs_trees),
    "prioritized-list": pytest.param(lambda: flat(ListStorage(40), prioritized()), marks=needs_trees),
    "prioritized-buffer": pytest.param(
        lambda: TensorDictPrioritizedReplayBuffer(alpha=0.7, beta=0.9, storage=LazyTensorStorage(40), batch_size=8),
        marks=needs_trees,
    ),
    "prioritized-max-value": pytest.param(
        lambda: flat(sampler=prioritized(), writer=TensorDictMaxValueWriter()), marks=needs_trees
    ),
    "prioritized-slices": pytest.param(
        lambda: flat(
            sampler=PrioritizedSliceSampler(
                max_capacity=40, alpha=0.7, beta=0.9, num_slices=2, traj_key="trajectory", strict_length=False
            )
        ),
        marks=needs_trees,
    ),
}
# where TorchRL's own state_dict raises, or forgets what it needs
TORCHRL_LOSES = (
    "max-value",
    "max-value-memmap",
    "prioritized-max-value",
    "two-dimensions",
    "two-dimensions-memmap",
    "offline-to-online",
)
TORCHRL_KEEPS = {name: build for name, build in BUFFERS.items() if name not in TORCHRL_LOSES}


def drive(buffer, numbers):
    """Extend, sample and rank; return all that was drawn."""
    drawn = []
    for number in numbers:
        if getattr(buffer, "_prefetch", False):
            buffer.synchronize()  # what is drawn ahead depends on when, otherwise
        extend(buffer, a_batch(number))
        for _ in range(3):
            sample = buffer.sample()
            drawn.append(sample.clone())
            if hasattr(buffer, "update_tensordict_priority"):
                sample.set("td_error", sample["next", "reward"].abs().reshape(sample.batch_size))
                buffer.update_tensordict_priority(sample)
    return drawn


def extend(buffer, batch):
    if isinstance(buffer, ReplayBufferEnsemble):
        for part in buffer._rbs:
            part.extend(batch)
    elif isinstance(buffer, HERReplayBuffer):  # it compares what was written last, which must be one number
        for step in batch:
            buffer.add(step)
    elif not isinstance(getattr(buffer, "writer", None), ImmutableDatasetWriter):
        buffer.extend(batch.reshape(3, 4) if getattr(getattr(buffer, "storage", None), "ndim", 1) == 2 else batch)


def saver_of(folder, backend, part):
    trainer = rlcore.Trainer(
        collector=None, total_frames=1, save_trainer_file=folder, checkpoint=backend, progress_bar=False
    )
    trainer.register_module("buffer", part)
    return trainer


def equal(left, right):
    for one, other in zip(left, right, strict=True):
        assert type(one) is type(other)
        if is_tensor_collection(one):
            assert one.batch_size == other.batch_size
            one, other = ([row.to_dict() for row in rows.unbind(0)] for rows in (one, other))
        assert difference(one, other) is None, difference(one, other)


def check_resume(build, backend, folder):
    torch.manual_seed(1)
    buffer = build()
    drive(buffer, range(5))
    saver_of(folder, backend, buffer).save_trainer(force_save=True)
    expected = drive(buffer, range(5, 12))
    torch.manual_seed(2)
    back = build()
    saver_of(folder, backend, back).load_from_file(folder)
    equal(drive(back, range(5, 12)), expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("build", BUFFERS.values(), ids=BUFFERS)
def test_a_buffer_draws_after_a_resume_what_it_would_have_drawn(build, tmp_path):
    check_resume(build, "torch", tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["dcp", "torchsnapshot"])
@pytest.mark.parametrize("name", ["memmap", "list", "max-value", "without-replacement", "two-dimensions"])
def test_every_back_end_carries_the_state_of_a_buffer(name, backend, tmp_path):
    check_resume(BUFFERS[name], backend, tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["dcp", "torchsnapshot"])
@needs_trees
def test_every_back_end_carries_the_trees_of_a_prioritized_sampler(backend, tmp_path):
    check_resume(lambda: flat(sampler=prioritized()), backend, tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("build", TORCHRL_KEEPS.values(), ids=TORCHRL_KEEPS)
def test_it_goes_on_as_after_a_resume_of_torchrl(build):
    """Where TorchRL's own `state_dict` and `load_state_dict` lose nothing, ours give the same."""
    torch.manual_seed(1)
    buffer = build()
    drive(buffer, range(5))
    state, generator, numpy_generator = copy.deepcopy(buffer.state_dict()), torch.get_rng_state(), np.random.get_state()
    expected = drive(buffer, range(5, 12))
    back = build()
    back.load_state_dict(state)
    torch.set_rng_state(generator)
    np.random.set_state(numpy_generator)
    equal(drive(back, range(5, 12)), expected)


def pairs(size):
    return TensorDict({"a": torch.arange(size)}, batch_size=[size])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("storage", [LazyTensorStorage, LazyMemmapStorage, ListStorage], ids=lambda kind: kind.__name__)
def test_a_storage_of_nested_tuples_and_dicts_comes_back(storage, tmp_path):
    def build():
        return ReplayBuffer(storage=storage(20), batch_size=4, collate_fn=lambda rows: rows)

    def drawn(buffer):
        return [buffer.sample() for _ in range(5)]

    buffer = build()
    for number in range(12):
        buffer.add((torch.tensor([number, 1.5]), {"x": torch.tensor(number)}))
    saver_of(tmp_path, "torch", buffer).save_trainer(force_save=True)
    expected = drawn(buffer)
    back = build()
    saver_of(tmp_path, "torch", back).load_from_file(tmp_path)
    assert difference(drawn(back), expected) is None
    back.add((torch.tensor([1.0, 2.0]), {"x": torch.tensor(3)}))
    assert len(back) == 13


@pytest.mark.filterwarnings("ignore")
def test_offline_data_are_no_part_of_a_checkpoint_and_must_be_the_same(tmp_path):
    def build(size):
        data = ReplayBuffer(storage=TensorStorage(a_batch(7, size)), batch_size=8)
        return OfflineToOnlineReplayBuffer(seeded(data), online_capacity=40, batch_size=8)

    buffer = build(24)
    saver_of(tmp_path, "torch", buffer).save_trainer(force_save=True)
    expected = buffer.sample()
    back = build(24)
    saver_of(tmp_path, "torch", back).load_from_file(tmp_path)
    assert difference(back.sample().to_dict(), expected.to_dict()) is None
    assert "observation" not in next(tmp_path.glob("*/state.json")).read_text()
    with pytest.raises(StorageError, match="the offline data, 12 steps here, are not those"):
        saver_of(tmp_path, "torch", build(12)).load_from_file(tmp_path)
    back.offline_buffer.storage._storage["observation"][0] += 1
    del back.offline_buffer._digest
    with pytest.raises(StorageError, match="the offline data, 24 steps here, are not those"):
        saver_of(tmp_path, "torch", back).load_from_file(tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_elements_of_unlike_shapes_with_texts_come_back(tmp_path):
    def build():
        return ReplayBuffer(storage=LazyStackStorage(20), batch_size=4)

    buffer = build()
    for number in range(1, 6):
        buffer.add(TensorDict({"x": torch.randn(number), "said": f"{number} words"}))
    saver_of(tmp_path, "torch", buffer).save_trainer(force_save=True)
    back = build()
    saver_of(tmp_path, "torch", back).load_from_file(tmp_path)
    for old, new in zip(buffer.storage._storage, back.storage._storage, strict=True):
        assert torch.equal(old["x"], new["x"])
        assert old["said"] == new["said"]
        assert old["x"].data_ptr() != new["x"].data_ptr()


class OwnStorage(ListStorage):
    """A storage of a script that has more to save."""

    label = ""

    def state_dict(self):
        return {**super().state_dict(), "label": self.label}

    def load_state_dict(self, state):
        super().load_state_dict({key: value for key, value in state.items() if key != "label"})
        self.label = state["label"]


@pytest.mark.filterwarnings("ignore")
def test_a_storage_that_saves_itself_is_left_to_it(tmp_path):
    buffer, back = (ReplayBuffer(storage=OwnStorage(20), batch_size=4) for _ in range(2))
    buffer.storage.label = "mine"
    saver_of(tmp_path, "torch", buffer).save_trainer(force_save=True)
    saver_of(tmp_path, "torch", back).load_from_file(tmp_path)
    assert back.storage.label == "mine"


@pytest.mark.filterwarnings("ignore")
def test_elements_that_are_alike_are_not_named_one_by_one(tmp_path):
    """A checkpoint is read up to a number of values, and a list may have a million elements."""
    for storage in (ListStorage(3000), CompressedListStorage(3000)):
        buffer = ReplayBuffer(storage=storage, batch_size=4)
        buffer.extend(pairs(2000))
        folder = tmp_path / type(storage).__name__
        saver_of(folder, "torch", buffer).save_trainer(force_save=True)
        (state,) = folder.glob("*/state.json")
        assert state.stat().st_size < 20_000


@pytest.mark.filterwarnings("ignore")
def test_a_memory_mapped_storage_goes_on_in_its_folder(tmp_path):
    def build():
        return flat(LazyMemmapStorage(40, scratch_dir=str(tmp_path / "rows"), auto_cleanup=False))

    buffer = build()
    drive(buffer, range(2))
    saver_of(tmp_path / "run", "torch", buffer).save_trainer(force_save=True)
    back = build()
    saver_of(tmp_path / "run", "torch", back).load_from_file(tmp_path / "run")
    drive(back, [7])
    written = TensorDict.load_memmap(tmp_path / "rows")
    assert difference(written.to_dict(), back.storage._storage.to_dict()) is None
    drive(buffer, [7])
    assert difference(back[:].to_dict(), buffer[:].to_dict()) is None


class Point(NamedTuple):
    x: torch.Tensor


@tensorclass
class Row:
    x: torch.Tensor


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("storage", "row", "named"),
    [
        (LazyTensorStorage, Row(torch.ones(4), batch_size=[4]), "LazyTensorStorage of Row"),
        (ListStorage, Row(torch.ones(4), batch_size=[4]), "a Row, which a checkpoint cannot carry"),
        (LazyTensorStorage, Point(torch.ones(4)), "LazyTensorStorage of named tuples"),
        (ListStorage, [Point(torch.ones(4))], "ListStorage of named tuples"),
        (ListStorage, [{1, 2}], "a set, which a checkpoint cannot carry"),
    ],
)
def test_what_would_come_back_as_something_else_is_refused_with_its_name(storage, row, named, tmp_path):
    buffer = ReplayBuffer(storage=storage(20), batch_size=4)
    buffer.extend(row)
    with pytest.raises(StorageError, match=named):
        saver_of(tmp_path, "torch", buffer).save_trainer(force_save=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("steps", range(1, 9))
def test_a_pass_over_a_buffer_goes_on_where_it_was(steps, tmp_path):
    def build():
        return ReplayBufferTrainer(flat(sampler=SamplerWithoutReplacement()), iterate=True)

    def drawn(hook, number):
        rows = []
        for _ in range(number):
            try:
                rows.append(hook.sample()["observation"].clone())
            except StopIteration:
                rows.append(None)
        return rows

    hook = build()
    hook.extend(a_batch(0, size=24))
    drawn(hook, steps)
    saver_of(tmp_path, "torch", hook).save_trainer(force_save=True)
    expected = drawn(hook, 9)
    back = build()
    saver_of(tmp_path, "torch", back).load_from_file(tmp_path)
    assert difference(drawn(back, 9), expected) is None


def test_a_buffer_that_draws_ahead_in_threads_is_no_exact_resume():
    assert "samples ahead in threads" in ReplayBufferTrainer(flat(prefetch=2)).inexact()
    assert ReplayBufferTrainer(flat()).inexact() is None


class Numbered:
    """A collector of numbered batches, which knows where it stands."""

    init_random_frames = 0

    def __init__(self):
        self.number = 0

    def __iter__(self):
        while self.number < 12:
            self.number += 1
            yield a_batch(self.number)

    def state_dict(self):
        return {"number": self.number}

    def load_state_dict(self, state):
        self.number = state["number"]


class Errors(torch.nn.Module):
    """A loss that says how wrong each step was, for a buffer that ranks by it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, batch):
        error = self.layer(batch["observation"]) - batch["next", "reward"]
        batch.set("td_error", error.detach().abs().reshape(batch.batch_size))
        return {"loss_value": error.square().mean()}


def script_over(buffer, folder=None, **arguments):
    loss = Errors()
    trainer = rlcore.Trainer(
        collector=Numbered(),
        total_frames=144,
        loss_module=loss,
        optimizer=torch.optim.Adam(loss.parameters(), lr=0.01),
        optim_steps_per_batch=3,
        progress_bar=False,
        save_trainer_file=folder,
    )
    ReplayBufferTrainer(buffer, **arguments).register(trainer)
    return trainer


REGISTERED = ["memmap", "list", "stack", "without-replacement", "max-value", "slices", "prioritized", "generations"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REGISTERED)
def test_a_script_over_a_buffer_learns_the_same_after_a_resume(name, tmp_path):
    if name == "prioritized" and not COMPILED:
        pytest.skip("the installed torchrl was compiled for another torch")
    build = (lambda: flat(sampler=prioritized())) if name == "prioritized" else BUFFERS[name]
    torch.manual_seed(1)
    np.random.seed(1)
    whole = script_over(build())
    whole.train()
    torch.manual_seed(1)
    np.random.seed(1)
    for _ in (first := script_over(build(), tmp_path)):
        if first.collected_frames == 72:
            first.save_trainer(force_save=True)
            break
    second = script_over(build(), tmp_path).load_from_file(tmp_path)
    assert second.collected_frames == 72
    second.train()
    assert difference(second.loss_module.state_dict(), whole.loss_module.state_dict()) is None


@pytest.mark.filterwarnings("ignore")
def test_what_a_checkpoint_cannot_carry_is_refused_before_the_first_frame(tmp_path):
    buffer = flat(TensorStorage(Row(torch.ones(4), batch_size=[4])))
    trainer = script_over(buffer, tmp_path)
    with pytest.raises(StorageError, match="TensorStorage of Row"):
        trainer.train()
    assert (trainer.collected_frames, trainer.collector.number) == (0, 0)


@pytest.mark.filterwarnings("ignore")
def test_what_only_the_first_batch_shows_is_refused_before_the_second(tmp_path):
    odd = ReplayBuffer(storage=LazyTensorStorage(20), batch_size=4)
    trainer = script_over(flat(), tmp_path)
    trainer.register_module("odd", odd)

    def put(batch):
        odd.extend(Row(batch["observation"], batch_size=[12]))

    trainer.register_op("pre_steps_log", put)
    with pytest.raises(StorageError, match="LazyTensorStorage of Row"):
        trainer.train()
    assert trainer.collector.number == 1
