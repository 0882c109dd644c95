"""N-step transitions equal those that plain loops over whole episodes give, however the stream is cut into batches."""

import pytest
import torch
from rlcore_plugin_replay.buffer import ReplayBuffer
from tensordict import TensorDict

from rlcore.errors import RlcoreError

GAMMA, ENVS, TIME = 0.9, 3, 60


def stream(masked=False):
    """Steps `[env, time]` whose episodes terminate or are truncated here and there."""
    generator = torch.Generator().manual_seed(1)
    terminated = torch.rand(ENVS, TIME, 1, generator=generator) < 0.08
    truncated = torch.rand(ENVS, TIME, 1, generator=generator) < 0.08
    done = terminated | truncated
    number = torch.arange(ENVS * TIME).reshape(ENVS, TIME)
    following = {
        "observation": number.float().unsqueeze(-1) + 0.5,
        "reward": torch.rand(ENVS, TIME, 1, generator=generator),
        "terminated": terminated,
        "truncated": truncated,
        "done": done,
    }
    batch = TensorDict({"observation": number.float().unsqueeze(-1), "number": number}, [ENVS, TIME])
    batch["next"] = TensorDict(following, [ENVS, TIME])
    if masked:  # the step after an end only resets the env
        mask = torch.ones_like(done)
        mask[:, 1:] = ~done[:, :-1]
        batch["next", "done"] = done & mask
        batch["collector"] = TensorDict({"mask": mask}, [ENVS, TIME])
    return batch


def expected(batch, env, time, steps):
    """Return reward, index of the last step and number of steps of one transition, step by step."""
    total, used = 0.0, 0
    for ahead in range(steps):
        total += GAMMA**ahead * float(batch["next", "reward"][env, time + ahead])
        used += 1
        if batch["next", "done"][env, time + ahead]:
            break
    return total, time + used - 1, used


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("cut", [60, 20, 7, 1])
@pytest.mark.parametrize("steps", [2, 3, 5])
def test_transitions_are_those_of_plain_loops(steps, cut, masked):
    batch = stream(masked)
    buffer = ReplayBuffer.of(capacity=ENVS * TIME, n_steps=steps, gamma=GAMMA)
    for piece in batch.split(cut, dim=1):
        buffer.extend(piece)
    mask = batch.get(("collector", "mask"), torch.ones_like(batch["next", "done"])).squeeze(-1)
    assert len(buffer) == int(mask[:, : TIME - steps + 1].sum()), "all but those that wait for what follows"
    samples = buffer.sample(3000)
    assert set(samples["number"].tolist()) == set(batch["number"][:, : TIME - steps + 1][mask[:, : 1 - steps]].tolist())
    for sample in samples[:300]:
        env, time = divmod(int(sample["number"]), TIME)
        total, last, used = expected(batch, env, time, steps)
        assert float(sample["next", "reward"]) == pytest.approx(total, rel=1e-5)
        assert int(sample["steps_to_next_obs"]) == used
        for key in ("observation", "terminated", "truncated", "done"):
            assert torch.equal(sample["next", key], batch["next", key][env, last])
        assert torch.equal(sample["observation"], batch["observation"][env, time])


def test_the_steps_that_wait_go_on_after_a_resume():
    pieces = stream().split(10, dim=1)
    whole = ReplayBuffer.of(capacity=100, n_steps=4)
    first = ReplayBuffer.of(capacity=100, n_steps=4)
    for buffer in (whole, first):
        for piece in pieces[:2]:
            buffer.extend(piece)
    second = ReplayBuffer.of(capacity=100, n_steps=4)
    second.load_state_dict(first.state_dict())
    for buffer in (whole, second):
        buffer.extend(pieces[2])
    assert len(whole) == len(second) == ENVS * (30 - 3)
    one, two = whole.sample(), second.sample()
    for key in one.keys(include_nested=True, leaves_only=True):
        assert torch.equal(one[key], two[key]), key


def test_n_steps_need_to_know_which_dimension_is_time():
    with pytest.raises(RlcoreError, match=r"\[env, time\], not \[180\]"):
        ReplayBuffer.of(capacity=100, n_steps=4).extend(stream().reshape(-1))
