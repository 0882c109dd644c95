"""Noise that is held: for how long, by whom, and across batches."""

import numpy as np
import torch
from rlcore_plugin_flashsac.held import HeldNoise, last_steps
from rlcore_plugin_testing import make_trainer

from .sections import around


def generator(seed=1):
    return torch.Generator().manual_seed(seed)


def drawn(held, steps, batches, envs):
    """Return noise `[time, env, action]` of several batches, and the steps at which each env begins a new one."""
    one = generator()
    noise = torch.cat([held.draw(steps, envs, 2, one) for _ in range(batches)])
    starts = (noise[1:] != noise[:-1]).all(-1)
    assert torch.equal(starts, (noise[1:] != noise[:-1]).any(-1)), "a part of it was held"
    return noise, [1 + each.nonzero().squeeze(-1) for each in starts.unbind(1)]


def test_batches_of_one_step_hold_noise_with_the_law_of_lengths():
    noise, starts = drawn(HeldNoise(3), 1, 400, 60)
    lengths = torch.cat([each.diff() for each in starts])
    weights = np.array([1, 1 / 4, 1 / 9])
    shares = lengths.bincount(minlength=4)[1:] / len(lengths)
    np.testing.assert_allclose(shares, weights / weights.sum(), atol=0.01)
    held = torch.cat([noise[own, env] for env, own in enumerate(starts)])
    np.testing.assert_allclose(held.std(), 1, atol=0.02)
    np.testing.assert_allclose(held.mean(), 0, atol=0.02)


def test_each_env_holds_noise_in_one_piece_for_a_number_of_steps_of_its_own():
    noise, starts = drawn(HeldNoise(16), 2, 150, 5)
    for env, own in enumerate(starts):
        assert len(noise[:, env, 0].unique()) == len(own) + 1, "a noise came back"
        assert own.diff().max() <= 16
    assert len({tuple(own.tolist()) for own in starts}) == 5


def test_noise_follows_from_the_state_of_the_generator_alone():
    """Whoever else draws in between, and whatever was drawn before."""
    held, one = HeldNoise(16), generator()
    noise = []
    for batch in range(40):
        state = one.get_state()
        noise.append(held.draw(1, 3, 2, one))
        if batch % 3 == 0:
            held.draw(1, 3, 2, generator(batch))
        again = generator()
        again.set_state(state)
        assert torch.equal(HeldNoise(16).draw(1, 3, 2, again), noise[-1])
        assert torch.equal(again.get_state(), one.get_state())
    assert (torch.stack(noise)[1:] == torch.stack(noise)[:-1]).any()


def test_intervals_laid_back_reach_as_far_as_their_last_steps_say():
    lengths = np.array([[1], [3], [2], [2], [1], [1], [1], [1]])
    # step 3 is a last one, for no later one reaches it, and so is 1; step 2 is in the interval of 3
    np.testing.assert_array_equal(last_steps(lengths, 4, 3)[:, 0], [1, 1, 3, 3])
    assert last_steps(lengths[:4], 4, 3) is None, "step 4 may reach back to 3"


def test_evaluations_have_no_noise_and_the_default_new_noise_in_each_step():
    policies = [make_trainer(sections=around(model=keys)).model.policy for keys in ({}, {"noise_steps": 9})]
    observation = torch.ones(3, 3)
    assert torch.equal(policies[0].mode(observation), policies[1].mode(observation))
    noise = [policy.draw(40, 2, generator()) for policy in policies]
    assert torch.equal(noise[0], torch.randn(40, 2, 2, generator=generator()))
    assert len(noise[1][:, 0, 0].unique()) < 40
