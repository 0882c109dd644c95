"""GAE: a case that is worked out by hand, and the recursion."""

import numpy as np
import pytest
import torch
from rlcore_plugin_ppo.estimator import discounted_sum
from rlcore_plugin_testing.contracts import GAEContract
from tensordict import TensorDict

GAE = GAEContract.of("ppo:gae")


def test_a_case_worked_out_by_hand():
    """Values 0 but for the observation after the cut; gamma = lambda = 0.5."""
    context = GAE.bench()
    with torch.no_grad():
        context.model.critic.weight.zero_()
        context.model.critic.weight[0, 0] = 1.0
        context.model.critic.bias.zero_()
    observation = torch.zeros(1, 4, 3)
    following = torch.zeros(1, 4, 3)
    following[0, 1, 0] = 8.0
    flags = {name: torch.zeros(1, 4, 1, dtype=torch.bool) for name in ("terminated", "truncated", "done")}
    flags["truncated"][0, 1] = flags["done"][0, 1] = True
    flags["terminated"][0, 3] = flags["done"][0, 3] = True
    entries = {"observation": following, "reward": torch.tensor([1.0, 2.0, 4.0, 8.0]).reshape(1, 4, 1), **flags}
    batch = TensorDict({"observation": observation, "next": TensorDict(entries, [1, 4])}, [1, 4])
    GAE.make(context, gamma=0.5, lmbda=0.5)(batch)
    # backwards: 8; 4 + 0.25 * 8; cut: 2 + 0.5 * 8; 1 + 0.25 * 6
    assert batch["advantage"].flatten().tolist() == [2.5, 6.0, 6.0, 8.0]
    assert batch["value_target"].flatten().tolist() == [2.5, 6.0, 6.0, 8.0]


def test_follows_the_newest_critic():
    context = GAE.bench()
    estimator, batch = GAE.make(context), GAE.batch(context)
    estimator(batch)
    before = batch["state_value"].clone()
    with torch.no_grad():
        context.model.critic.bias += 1
    estimator(batch)
    assert torch.allclose(batch["state_value"], before + 1)


def test_equal_advantages_become_zero():
    context = GAE.bench()
    with torch.no_grad():
        context.model.critic.weight.zero_()
        context.model.critic.bias.zero_()
    batch = GAE.batch(context, {(env, time): "terminated" for env in range(3) for time in range(12)})
    batch["next", "reward"].fill_(3.0)
    GAE.make(context, standardise=True)(batch)
    assert batch["advantage"].abs().max() < 1e-6


def test_a_single_advantage_is_not_standardised():
    context = GAE.bench()
    batch = GAE.batch(context)[:1, :1]
    GAE.make(context, standardise=True)(batch)
    difference = batch["value_target"] - batch["state_value"]
    assert torch.allclose(batch["advantage"], difference, atol=1e-6)
    assert batch["advantage"].abs().item() > 1e-3


@pytest.mark.parametrize("num_envs", [1, 2, 7])
def test_discounted_sum_is_the_recursion(num_envs):
    generator = np.random.default_rng(1)
    values, discounts = generator.normal(size=(2, num_envs, 20)).astype(np.float32)
    expected = np.zeros((num_envs, 21))
    for time in reversed(range(20)):
        expected[:, time] = values[:, time] + discounts[:, time] * expected[:, time + 1]
    found = discounted_sum(*(torch.from_numpy(array).unsqueeze(-1) for array in (values, discounts)))
    np.testing.assert_allclose(found.squeeze(-1).numpy(), expected[:, :-1], rtol=1e-4, atol=1e-5)
