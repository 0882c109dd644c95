"""Stacks whose frames are stored once: the samples are those of whole observations, in less memory."""

import pytest
import torch
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_replay.prioritized import PrioritizedReplayBuffer
from rlcore_plugin_replay.sequences import SequenceReplayBuffer
from rlcore_plugin_testing import check_resumed, make_run, through_checkpoint
from tensordict import TensorDict

from rlcore.errors import ConfigError, RlcoreError, StorageError

STACK, FRAME = 3, (2, 5)
SIZES = {"capacity": 30, "minibatch_size": 16}


class Stream:
    """Envs that show stacks of random frames; episodes begin with one frame repeated, or with all others."""

    def __init__(self, envs=2, seed=0, masked=False, dtype=torch.uint8):
        self.generator = torch.Generator().manual_seed(seed)
        self.masked, self.dtype = masked, dtype
        self.stacks = [self.first() for _ in range(envs)]
        self.over = [False] * envs

    def frame(self, count=1):
        return torch.randint(0, 2 if self.dtype == torch.bool else 250, (count, *FRAME), generator=self.generator).to(
            self.dtype
        )

    def chance(self, of):
        return bool(torch.rand((), generator=self.generator) < of)

    def first(self):
        return self.frame().expand(STACK, *FRAME).clone() if self.chance(0.5) else self.frame(STACK)

    def batch(self, steps):
        rows = [[self.step(env) for _ in range(steps)] for env in range(len(self.stacks))]
        before, after, done, valid = ([[step[part] for step in row] for row in rows] for part in range(4))
        flags = torch.tensor(done).unsqueeze(-1)
        envs = len(rows)
        numbers = torch.rand(envs, steps, 1, generator=self.generator)
        following = {"observation": torch.stack([torch.stack(row) for row in after]), "reward": numbers, "done": flags}
        entries = {
            "observation": torch.stack([torch.stack(row) for row in before]),
            "action": torch.randint(0, 4, (envs, steps), generator=self.generator),
            "next": TensorDict({**following, "terminated": flags}, [envs, steps]),
        }
        if self.masked:
            entries["collector"] = TensorDict({"mask": torch.tensor(valid).unsqueeze(-1)}, [envs, steps])
        return TensorDict(entries, [envs, steps])

    def step(self, env):
        before = self.stacks[env]
        if self.over[env]:  # it only resets
            self.stacks[env], self.over[env] = self.first(), False
            return before, self.stacks[env], False, False
        after = torch.cat([before[1:], self.frame()])
        done = self.chance(0.2)
        self.over[env] = done and self.masked
        self.stacks[env] = self.first() if done and not self.masked else after
        return before, after, done, True


def both(kind=ReplayBuffer, **settings):
    """Return a buffer of whole observations, and one of frames."""
    return kind.of(seed=1, **SIZES, **settings), kind.of(seed=1, **SIZES, stack=STACK, frames=200, **settings)


def assert_equal(one, other):
    for key in one.keys(True, True):
        assert torch.equal(one[key], other[key]), key
        assert one[key].dtype == other[key].dtype, key


@pytest.mark.parametrize("kind", [ReplayBuffer, PrioritizedReplayBuffer])
@pytest.mark.parametrize("masked", [False, True], ids=["same-step", "next-step"])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_samples_are_those_of_whole_observations(kind, masked, n_steps):
    whole, stacked = both(kind, n_steps=n_steps)
    stream = Stream(masked=masked)
    for steps in (4, 1, 7, 2, 9, 5):
        batch = stream.batch(steps)
        whole.add(batch)
        stacked.add(batch)
        one, other = whole.sample(), stacked.sample()
        assert_equal(one, other)
        if kind is PrioritizedReplayBuffer:
            priority = torch.rand(len(one["index"]), generator=stream.generator)
            whole.update_priority(one["index"], priority)
            stacked.update_priority(other["index"], priority)


def remembered(batch, over):
    """Add what a policy with memory writes; `over` says of each env whether an episode begins next, and is updated."""
    done = batch["next", "done"].squeeze(-1)
    first = torch.cat([over.unsqueeze(1), done[:, :-1]], 1)
    if "collector" in set(batch.keys()):
        valid = batch["collector", "mask"].squeeze(-1)
        began = over.clone()
        for time in range(first.shape[1]):  # a step that only resets comes between
            first[:, time] = began & valid[:, time]
            began = torch.where(valid[:, time], done[:, time], began)
        over[:] = began
    else:
        over[:] = done[:, -1]
    batch["first"] = first.unsqueeze(-1)
    batch["policy_state"] = batch["next", "reward"].expand(-1, -1, 2).clone()
    return batch


def sequence_buffers(storage="memory", frames=200, **keys):
    """Return a buffer of whole observations, and one of frames."""
    sizes = {"capacity": 60, "minibatch_size": 6, "sequence_length": 3, "burn_in": 2, "overlap": 1, "n_steps": 2}
    return [
        SequenceReplayBuffer.of(seed=1, storage=storage, **{**sizes, **keys, **stack})
        for stack in ({}, {"stack": STACK, "frames": frames})
    ]


@pytest.mark.parametrize("masked", [False, True], ids=["same-step", "next-step"])
def test_sequences_are_those_of_whole_observations(masked):
    """Over rings that are written several times, through a checkpoint, and where the collector begins new episodes."""
    whole, stacked = sequence_buffers()
    stream, over = Stream(masked=masked), torch.ones(2, dtype=torch.bool)
    found = 0
    for number in range(30):
        batch = remembered(stream.batch(5), over)
        for buffer in (whole, stacked):
            buffer.add(batch)
        if number % 10 == 4:
            state = through_checkpoint(stacked.state_dict())
            stacked = sequence_buffers()[1]
            stacked.load_state_dict(state)
        if number == 20:
            whole.forget_episodes()
            stacked.forget_episodes()
            over[:] = True
            stream.over = [False, False]
        if len(whole):
            one, other = whole.sample(), stacked.sample()
            assert one["observation"].shape[:3] == (7, 6, STACK)
            assert_equal(one, other)
            found += 1
    assert found > 20
    assert len(whole) == len(stacked)
    assert stacked.state_dict()["episodes"]["stacks"]["written"] > 200


def test_sequences_whose_frames_are_gone_are_refused_and_so_are_those_that_are_stored_otherwise():
    _, few = sequence_buffers(frames=30)
    stream, over = Stream(), torch.ones(2, dtype=torch.bool)
    batches = [remembered(stream.batch(5), over) for _ in range(10)]
    with pytest.raises(RlcoreError, match=r"\[buffer\] frames = 30 are too few"):
        list(map(few.add, batches))
    whole, stacked = sequence_buffers()
    for buffer in (whole, stacked):
        buffer.add(remembered(Stream().batch(5), torch.ones(2, dtype=torch.bool)))
    with pytest.raises(StorageError, match=r"it keeps frames in the checkpoint, and whole observations here"):
        whole.load_state_dict(stacked.state_dict())
    with pytest.raises(StorageError, match=r"it keeps whole observations in the checkpoint, and frames here"):
        stacked.load_state_dict(whole.state_dict())


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
@pytest.mark.parametrize("storage", ["memory", "memmap"])
def test_frames_of_any_number_lie_in_memory_or_in_a_mapped_file(dtype, storage, tmp_path):
    whole, stacked = both(storage=storage, folder=tmp_path)
    batch = Stream(dtype=dtype).batch(12)
    whole.add(batch)
    stacked.add(batch)
    assert_equal(whole.sample(), stacked.sample())


@pytest.mark.parametrize("n_steps", [1, 2])
def test_a_resumed_buffer_goes_on_as_before(n_steps):
    _, first = both(n_steps=n_steps)
    stream = Stream()
    first.add(stream.batch(11))
    _, second = both(n_steps=n_steps)
    second.load_state_dict(through_checkpoint(first.state_dict()))
    written = []
    for _ in range(3):
        batch = stream.batch(6)
        for buffer in (first, second):
            buffer.add(batch)
            written.append(buffer.state_dict()["stacks"]["written"])
        assert_equal(first.sample(), second.sample())
    assert written[::2] == written[1::2], "the running episodes bring no frames again"


def test_every_frame_is_stored_once():
    buffer = ReplayBuffer.of(**SIZES, stack=STACK, frames=200)
    frames = torch.arange(20, dtype=torch.uint8).view(20, 1, 1).expand(20, *FRAME)
    stacks = torch.stack([frames[number : number + STACK] for number in range(18)])
    for begin in (0, 5, 12):
        steps = min(begin + 7, 17) - begin if begin == 12 else (5 if begin == 0 else 7)
        flags = torch.zeros(1, steps, 1, dtype=torch.bool)
        following = {"observation": stacks[None, begin + 1 : begin + 1 + steps], "done": flags, "terminated": flags}
        following["reward"] = torch.zeros(1, steps, 1)
        entries = {"observation": stacks[None, begin : begin + steps], "action": torch.zeros(1, steps)}
        buffer.add(TensorDict({**entries, "next": TensorDict(following, [1, steps])}, [1, steps]))
    state = buffer.state_dict()["stacks"]
    assert state["written"] == 20
    assert torch.equal(state["frames"].view(torch.uint8)[:20, 0], torch.arange(20, dtype=torch.uint8))


def test_a_stack_that_does_not_move_on_by_one_frame_is_refused():
    batch = Stream().batch(6)
    batch["next", "observation"][1, 2] = batch["next", "observation"][1, 2].flip(0)
    with pytest.raises(RlcoreError, match=r"\[buffer\] stack = 3: the observation after a step of env 1 is not"):
        both()[1].add(batch)


def test_other_observations_are_refused():
    stream = Stream()
    with pytest.raises(RlcoreError, match=r"\[buffer\] stack = 4: observations are \[3, 2, 5\]; their first"):
        ReplayBuffer.of(**SIZES, stack=4).add(stream.batch(3))
    with pytest.raises(RlcoreError, match=r"\[buffer\] stack takes batches \[env, time\]"):
        both()[1].add(stream.batch(3).reshape(-1))


def test_too_few_frames_are_told_and_nothing_is_mixed_up():
    buffer = ReplayBuffer.of(**SIZES, stack=STACK, frames=31)
    stream = Stream()

    def fill():
        for _ in range(20):
            buffer.add(stream.batch(3))

    with pytest.raises(RlcoreError, match=r"\[buffer\] frames = 31 are too few: .*set frames = 62"):
        fill()


def test_frames_without_a_stack_and_other_checkpoints_are_refused():
    with pytest.raises(ValueError, match="frames = 5 are those of stacks"):
        ReplayBuffer.of(frames=5)
    whole, stacked = both()
    for buffer in (whole, stacked):
        buffer.add(Stream().batch(3))
    with pytest.raises(StorageError, match=r"keeps whole observations in the checkpoint, and frames here"):
        stacked.load_state_dict(whole.state_dict())
    with pytest.raises(StorageError, match=r"keeps frames in the checkpoint, and whole observations here"):
        whole.load_state_dict(stacked.state_dict())
    other = ReplayBuffer.of(**SIZES, stack=STACK, frames=100)
    with pytest.raises(StorageError, match=r"keeps 200 frames for stacks of 3, and this one 100"):
        other.load_state_dict(stacked.state_dict())


def sections(**buffer):
    return {
        "env": {"use": "testing:toy-pixels", "actions": "discrete"},
        "model": {
            "use": "dqn:q-network",
            "encoder": "rlcore_plugin_cnn.bodies:NatureCNN",
            "encoder_kwargs": {"channels": [4], "kernels": [3], "strides": [2], "features": 8},
            "hidden": [8],
        },
        "loss": {"use": "dqn", "target_interval": 2},
        "estimator": [],
        "buffer": {
            "use": "replay",
            "capacity": 40,
            "minibatch_size": 8,
            "updates_per_batch": 2,
            "warmup_frames": 16,
            **buffer,
        },
    }


def test_a_run_of_frames_is_that_of_whole_observations_and_resumes_exactly(tmp_path):
    pytest.importorskip("rlcore_plugin_cnn")
    plain = make_run(sections=sections())
    plain.trainer.train()
    whole = check_resumed(tmp_path, sections=sections(stack=4))
    for one, other in zip(plain.trainer.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_run_whose_observations_are_no_stacks_is_refused_before_the_first_frame():
    pytest.importorskip("rlcore_plugin_cnn")
    with pytest.raises(ConfigError, match=r"\[buffer\] stack = 3: observations are \[4, 6, 6\]"):
        make_run(sections=sections(stack=3))
