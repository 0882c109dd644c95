"""Sequences are those that a plain loop over whole episodes cuts: rows, masks, states, rewards, bootstrap rows."""

import random
from pathlib import Path

import pytest
import torch
from rlcore_plugin_replay.sequences import SequenceReplayBuffer
from rlcore_plugin_testing import make_trainer
from rlcore_plugin_testing.compare import difference
from tensordict import TensorDict

from rlcore.errors import ConfigError, RlcoreError, StorageError
from rlcore.state.tree import through_checkpoint
from rlcore.types import MASK, Context, Progress, RunInfo

GAMMA = 0.5  # of which sums are exact
ENVS = 3
STEPS = 7
WHOLE = ("policy_state", "index")  # [sequence, ...]


class Stream:
    """One env that ends at random, each observation a number of its own, with the state of a policy before it."""

    def __init__(self, env, seed, next_step):
        self.random = random.Random(100 * seed + env)
        self.number = 10_000 * (env + 1)
        self.next_step = next_step
        self.episodes = [[]]  # of (observation, state, reward, terminated, truncated, next observation)
        self.resets = False
        self.observation = self.new()

    def new(self):
        self.number += 1
        return self.number

    def step(self):
        """Return (observation, first, terminated, truncated, reward, next observation, valid)."""
        if self.resets:  # a step that only resets
            self.resets, before, self.observation = False, self.observation, self.new()
            return before, False, False, False, 0.0, self.observation, False
        first = not self.episodes[-1]
        ends = self.random.random() < self.random.choice([0.02, 0.1, 0.5])
        terminated = ends and self.random.random() < 0.5
        reward = float(self.random.randrange(-8, 8))
        following = self.new()
        self.episodes[-1].append((self.observation, reward, terminated, ends and not terminated, following))
        result = (self.observation, first, terminated, ends and not terminated, reward, following, True)
        self.observation = following
        if ends:
            self.episodes.append([])
            self.resets = self.next_step
            self.observation = following if self.next_step else self.new()
        return result


def state_before(observation):
    return [observation + 0.25, observation + 0.5]


def batch_of(streams, steps=STEPS, memory=True):
    rows = [[stream.step() for _ in range(steps)] for stream in streams]
    observation, first, terminated, truncated, reward, following, valid = (
        torch.tensor([[step[number] for step in env] for env in rows]).unsqueeze(-1) for number in range(7)
    )
    flags = {"terminated": terminated, "truncated": truncated, "done": terminated | truncated}
    entries = {"observation": observation.float(), "action": observation.squeeze(-1) % 5}
    if memory:
        entries |= {"first": first, "policy_state": torch.cat([observation + 0.25, observation + 0.5], -1).float()}
    following = {"observation": following.float(), "reward": reward.float(), **flags}
    return TensorDict({**entries, "next": following, "collector": {"mask": valid}}, [len(streams), steps])


def expected_of(stream, cut, rows):
    """Return what the sequences of an env must be, from its whole episodes, as they are found in `found_of`."""
    length, burn_in, overlap, n_steps = cut
    ends = []  # the number of the first row after each episode
    for episode in stream.episodes:
        ends.append((ends[-1] if ends else 0) + len(episode) + 1)
    oldest = ends[-1] - rows  # the row after the latest step has its place too
    found = {}
    for episode, end in zip(stream.episodes, ends, strict=True):
        over = bool(episode) and (episode[-1][2] or episode[-1][3])
        for begin in range(0, len(episode), length - overlap):
            complete = len(episode) >= begin + length + n_steps - 1
            needed = begin == 0 or len(episode) > begin + overlap
            row = end - len(episode) - 1 + begin
            if (complete or (over and needed)) and row - burn_in >= oldest:
                found[episode[begin][0]] = sequence_of(episode, begin, cut)
    return found


def sequence_of(episode, begin, cut):
    """Return the trained steps of a sequence, what burn-in there is, and the state before the first row."""
    length, burn_in, _, n_steps = cut
    trained = []
    for step in range(begin, min(begin + length, len(episode))):
        joined = episode[step : step + n_steps]
        total = sum(GAMMA**ahead * reward for ahead, (_, reward, *_) in enumerate(joined))
        trained.append((episode[step][0], total, len(joined), *joined[-1][2:]))
    before = [step[0] for step in episode[max(0, begin - burn_in) : begin]]
    state = state_before(episode[begin - burn_in][0]) if begin > burn_in else [0.0, 0.0]
    return trained, before, state, begin <= burn_in


def found_of(samples, cut):
    """Return the same of samples, by the number of the first trained observation."""
    length, burn_in, _, n_steps = cut
    assert samples["observation"].shape[0] == burn_in + length + n_steps
    lists = {key: samples[key].squeeze(-1).T.tolist() for key in samples.keys(True, True) if key not in WHOLE}
    seen = {number: place for place, number in enumerate(samples["index"].tolist())}
    return dict(found_at(place, samples["policy_state"][place].tolist(), lists, cut) for place in seen.values())


def found_at(place, state, lists, cut):
    length, burn_in, *_ = cut
    of = {key: rows[place] for key, rows in lists.items()}
    mask, seen, first = of[MASK], of["observation"], of["first"]
    assert not any(mask[:burn_in])
    assert not any(mask[burn_in + length :])
    trained = []
    for row in range(burn_in, burn_in + length):
        if mask[row]:
            bootstrap = seen[of["bootstrap_row"][row]]
            assert of["next", "observation"][row] == bootstrap
            assert of["action"][row] == seen[row] % 5
            ends = of["next", "terminated"][row], of["next", "truncated"][row]
            trained.append((seen[row], of["next", "reward"][row], of["steps_to_next_obs"][row], *ends, bootstrap))
    before = list(dict.fromkeys(seen[:burn_in]))
    if trained[0][0] in before:  # all of the burn-in is padding
        before.remove(trained[0][0])
    begins = [row for row, flag in enumerate(first) if flag]
    assert not begins or begins == list(range(burn_in - len(before) + 1)), "padding, and the first row"
    return seen[burn_in], (trained, before, state, bool(begins))


def new_buffer(cut, loss=None, **settings):
    length, burn_in, overlap, n_steps = cut
    keys = {"sequence_length": length, "burn_in": burn_in, "overlap": overlap, "n_steps": n_steps}
    settings = {"capacity": 200, "gamma": GAMMA, **keys, **settings}
    if loss is None:
        return SequenceReplayBuffer.of(seed=1, **settings)
    run = RunInfo("replay", 1, total_frames=1)
    context = Context(run, torch.device("cpu"), Progress(total_frames=1), kind="buffer", name="replay")
    context.built["loss"] = loss
    return SequenceReplayBuffer(SequenceReplayBuffer.Config(**settings), context)


CUTS = [(4, 0, 0, 1), (4, 3, 2, 1), (5, 2, 1, 3), (3, 6, 0, 2), (1, 1, 0, 4), (6, 4, 5, 2)]


@pytest.mark.parametrize("next_step", [False, True])
@pytest.mark.parametrize("cut", CUTS)
def test_sequences_are_those_of_a_loop_over_whole_episodes(cut, next_step):
    streams = [Stream(env, 1, next_step) for env in range(ENVS)]
    buffer = new_buffer(cut, alpha=0)
    for number in range(20):
        buffer.add(batch_of(streams))
        if number in (0, 4, 12, 19):
            expected = {}
            for stream in streams:
                expected |= expected_of(stream, cut, 200 // ENVS)
            assert len(buffer) == len(expected)
            assert found_of(buffer.sample(2000), cut) == expected


CUT = (4, 3, 2, 2)


def filled(batches=6, seed=1, cut=CUT, **settings):
    streams = [Stream(env, seed, next_step=False) for env in range(ENVS)]
    buffer = new_buffer(cut, **settings)
    for _ in range(batches):
        buffer.add(batch_of(streams))
    return buffer, streams


def test_steps_before_the_first_known_beginning_of_an_episode_are_left_out():
    streams = [Stream(env, 1, next_step=False) for env in range(ENVS)]
    missed = batch_of(streams)
    buffer = new_buffer(CUT, alpha=0)
    for _ in range(5):
        buffer.add(batch_of(streams))
    running = [not done[-1] for done in missed["next", "done"].flatten(1).tolist()]
    assert any(running), "an episode runs on into what the buffer sees"
    expected = {}
    for stream, seen in zip(streams, missed["observation"].flatten(1).tolist(), strict=True):
        whole = [episode for episode in stream.episodes if episode and episode[0][0] > seen[-1]]
        stream.episodes = whole if stream.episodes[-1] else [*whole, []]
        expected |= expected_of(stream, CUT, 200 // ENVS)
    assert found_of(buffer.sample(2000), CUT) == expected


def test_without_memory_there_is_no_state_and_every_step_counts():
    streams = [Stream(env, 1, next_step=False) for env in range(ENVS)]
    batch_of(streams)
    buffer = new_buffer(CUT, alpha=0)
    batch = batch_of(streams, steps=20, memory=False)
    buffer.add(batch)
    buffer.forget_episodes()
    samples = buffer.sample(500)
    assert samples.get("policy_state", None) is None
    trained = samples["observation"][samples[MASK]].unique()
    assert set(trained.tolist()) == set(batch["observation"].flatten().tolist())


def test_episodes_that_the_collector_forgets_end_where_they_are():
    buffer, streams = filled(batches=3, alpha=0)
    buffer.forget_episodes()
    for stream in streams:  # what was the running episode is complete: as if the last step were truncated
        if stream.episodes[-1]:
            last = stream.episodes[-1][-1]
            stream.episodes[-1][-1] = (*last[:3], True, last[4])
            stream.episodes.append([])
    expected = {}
    for stream in streams:
        expected |= expected_of(stream, CUT, 200 // ENVS)
    found = found_of(buffer.sample(2000), CUT)
    for entry in (*found.values(), *expected.values()):  # nothing says that they are truncated
        entry[0][:] = [(*step[:4], step[5]) for step in entry[0]]
    assert found == expected


def test_a_step_that_is_masked_ends_what_came_before_it():
    streams = [Stream(0, 3, next_step=False)]
    buffer = new_buffer((4, 2, 0, 1), alpha=0)
    batch = batch_of(streams, steps=20, memory=False)
    batch["next", "done"].zero_()
    batch["collector", "mask"][0, 10] = False
    buffer.add(batch)
    buffer.forget_episodes()
    samples = buffer.sample(300)
    seen = batch["observation"].flatten().tolist()
    rows = {tuple(sorted(set(column.tolist()))) for column in samples["observation"].squeeze(-1).T}
    assert all(max(row) <= batch["next", "observation"][0, 9] or min(row) >= seen[11] for row in rows)
    assert set(samples["observation"][samples[MASK]].tolist()) == {*seen[:10], *seen[11:]}


@pytest.mark.parametrize("storage", ["memory", "memmap"])
@pytest.mark.parametrize("batches", [2, 40])
def test_a_restored_buffer_goes_on_as_the_first(storage, batches, tmp_path):
    first, streams = filled(batches, storage=storage, folder=tmp_path)
    for _ in range(3):
        samples = first.sample()
        first.feedback(samples, {"td_error": samples["observation"] % 7})
    second = new_buffer(CUT, storage=storage, folder=tmp_path)
    second.load_state_dict(through_checkpoint(first.state_dict()))
    for _ in range(4):
        assert difference(first.state_dict(), second.state_dict()) is None
        batch = batch_of(streams)
        for buffer in (first, second):
            buffer.add(batch)
        one, two = first.sample(), second.sample()
        assert difference(one.to_dict(), two.to_dict()) is None
        for buffer in (first, second):
            buffer.feedback(one, {"td_error": one["observation"] % 7})


class InfersTwoNumbers:
    """A loss that infers states, each the number of the first trained observation of its sequence."""

    takes_memory = True
    burn_in, stride, inferred_states = 0, 0, None


@pytest.mark.parametrize("batches", [6, 8, 20])
@pytest.mark.parametrize("cut", CUTS)
def test_states_that_a_loss_infers_are_stored_for_the_next_sequence_of_the_episode(cut, batches):
    loss, length, overlap = InfersTwoNumbers(), cut[0], cut[2]
    buffer, streams = filled(batches, cut=cut, loss=loss, alpha=0)
    stride = length - overlap
    assert loss.stride == stride
    expected = {}
    for stream in streams:
        expected |= expected_of(stream, cut, 200 // ENVS)
    samples = buffer.sample(40)
    begins = samples["observation"][cut[1], :, 0]
    loss.inferred_states = torch.stack([begins, begins], 1)
    loss.inferred_states[::5] = torch.nan
    buffer.feedback(samples, {})
    inferred = {int(number) for number, (state, _) in zip(begins, loss.inferred_states, strict=True) if state == state}
    renewed = 0
    for number, (trained, before, _, begins) in expected.items():
        follows = number - stride in inferred and number - stride in expected and not begins
        if follows and sequence_reaches(streams, number - stride, number):
            expected[number], renewed = (trained, before, [number - stride] * 2, begins), renewed + 1
    assert found_of(buffer.sample(3000), cut) == expected
    assert renewed


def sequence_reaches(streams, begin, number):
    """Return whether two observations are of the same episode."""
    episodes = ([step[0] for step in episode] for stream in streams for episode in stream.episodes)
    return any(begin in episode and number in episode for episode in episodes)


def test_priorities_are_mixed_of_the_largest_error_and_the_mean():
    buffer, _ = filled(alpha=1.0, beta=1.0, eta=0.75, minibatch_size=400)
    samples = buffer.sample()
    generator = torch.Generator().manual_seed(0)
    errors = {int(index): 2.0 * torch.randn(4, generator=generator) for index in samples["index"].unique()}
    td_error = torch.full(samples[MASK].shape, 1000.0)  # outside of the mask it must not count
    priority = {}
    for place, index in enumerate(samples["index"].tolist()):
        mask = samples[MASK][:, place, 0]
        td_error[mask, place, 0] = errors[index][: int(mask.sum())]
        size = errors[index][: int(mask.sum())].abs().double()
        priority[index] = float(0.75 * size.max() + 0.25 * size.mean())
    buffer.feedback(samples, {"td_error": td_error})
    drawn = buffer.sample(100_000)
    total = sum(priority.values())
    counts = torch.bincount(drawn["index"], minlength=200).double() / 100_000
    for index, value in priority.items():
        assert counts[index] == pytest.approx(value / total, abs=0.002)
    place = {int(index): number for number, index in enumerate(drawn["index"])}
    smallest = min(priority.values())
    for index, number in place.items():
        expected = torch.full((9, 1), smallest / priority[index])
        assert torch.allclose(drawn["priority_weight"][:, number], expected, rtol=1e-4)


def test_priorities_of_rows_that_were_overwritten_are_gone():
    buffer, streams = filled(batches=40, alpha=1.0)
    samples = buffer.sample(300)
    buffer.feedback(samples, {"td_error": torch.full(samples[MASK].shape, 1e6)})
    for _ in range(30):
        buffer.add(batch_of(streams))
    expected = {}
    for stream in streams:
        expected |= expected_of(stream, CUT, 200 // ENVS)
    assert found_of(buffer.sample(2000), CUT) == expected


def test_what_does_not_fit_is_refused():
    buffer, streams = filled()
    with pytest.raises(RlcoreError, match=r"capacity = 198 is too small for 3 envs: .* capacity = \d+ or more"):
        buffer.add(batch_of(streams, steps=60))
    with pytest.raises(RlcoreError, match=r"takes batches \[env, time\], not \[2, 7\]"):
        buffer.add(batch_of(streams[:2]))
    other = new_buffer((4, 3, 0, 2))
    with pytest.raises(StorageError, match=r"\[buffer\] overlap = 2 in the checkpoint, 0 here"):
        other.load_state_dict(buffer.state_dict())
    with pytest.raises(ValueError, match="overlap = 4 must be less than sequence_length = 4"):
        new_buffer((4, 0, 4, 1))
    with pytest.raises(RlcoreError, match="the replay buffer is empty"):
        other.sample()


def sections(loss="loose-parts:sequence-td", **changes):
    keys = {"sequence_length": 4, "burn_in": 2, "n_steps": 1, "warmup_frames": 32, "minibatch_size": 3, **changes}
    return {
        "plugins": {"files": [str(Path(__file__).with_name("loose_parts.py"))]},
        "loss": {"use": loss},
        "estimator": None,
        "buffer": {"use": "replay:sequences", "capacity": 200, **keys},
    }


def test_what_cannot_be_trained_is_refused_before_the_first_frame():
    with pytest.raises(ConfigError, match=r"\[buffer\] use: replay:sequences samples sequences, and this loss takes"):
        make_trainer(sections=sections("loose-parts:td"))
    with pytest.raises(ConfigError, match=r"\[buffer\] capacity = 40 is too small for 2 envs"):
        make_trainer(sections=sections(capacity=40))
    with pytest.raises(
        ConfigError, match=r"\[buffer\] stack = 4: observations are \[3\]; their first dimension must be"
    ):
        make_trainer(sections=sections(stack=4))
    steps = sections() | {"buffer": {"use": "replay"}}
    with pytest.raises(ConfigError, match=r'takes sequences; set use = "replay:sequences"'):
        make_trainer(sections=steps)


def test_the_loss_hears_of_the_burn_in_and_updates_follow_the_warm_up():
    trainer = make_trainer(sections=sections(updates_per_batch=2))
    assert trainer.learner._loss.burn_in == 2
    assert {progress.frames: progress.updates for progress in trainer} == {16: 0, 32: 2, 48: 4, 64: 6}
    assert len(trainer.buffer.sample(64)["priority_weight"].unique()) > 3, "errors differ, and so do priorities"
