"""RewardNormalizer keeps decayed statistics and normalises what is drawn."""

import pytest
import torch

from rlcore import HookError, Minibatch, RewardNormalizer


def rewards(batch):
    return batch["next", "reward"]


@pytest.mark.parametrize("size", [(40,), (4, 10)])
def test_without_decay_it_is_the_mean_and_the_deviation_of_all_rewards(batch, size):
    hook = RewardNormalizer(decay=1.0)
    first, second = batch(*size), batch(*size, seed=1)
    hook.update_reward_stats(first)
    hook.update_reward_stats(second)
    every = torch.cat([rewards(first).reshape(-1), rewards(second).reshape(-1)])
    assert hook.statistics["mean"].item() == pytest.approx(every.mean().item(), abs=1e-6)
    assert hook.statistics["std"].item() == pytest.approx(every.std().item(), rel=1e-5)


def test_earlier_batches_weigh_less(batch):
    hook = RewardNormalizer(decay=0.5)
    for number in (0.0, 1.0, 1.0):
        whole = batch(10)
        whole["next", "reward"].fill_(number)
        hook.update_reward_stats(whole)
    assert hook.statistics["count"] == 17.5
    assert hook.statistics["mean"].item() == pytest.approx(15 / 17.5)


def test_padding_does_not_count(batch, masked):
    hook = RewardNormalizer()
    whole = masked(batch(2, 3), [[1, 1, 0], [1, 0, 0]])
    hook.update_reward_stats(whole)
    assert hook.statistics["count"] == 3
    assert hook.statistics["sum"].item() == pytest.approx(rewards(whole).reshape(-1)[[0, 1, 3]].sum().item())


def test_rewards_are_normalised_and_scaled_and_the_batch_stays(batch):
    hook = RewardNormalizer(scale=3.0)
    whole = batch(50)
    before = whole.clone()
    hook.update_reward_stats(whole)
    changed = rewards(hook.normalize_reward(whole))
    assert changed.mean().item() == pytest.approx(0.0, abs=1e-5)
    assert changed.std().item() == pytest.approx(3.0, rel=1e-5)
    assert torch.equal(rewards(whole), rewards(before))


def test_equal_rewards_are_divided_by_the_least_deviation(batch):
    hook = RewardNormalizer(eps=0.25)
    whole = batch(4)
    whole["next", "reward"].fill_(1.0)
    hook.update_reward_stats(whole)
    whole["next", "reward"].fill_(2.0)
    assert rewards(hook.normalize_reward(whole)).tolist() == [[2.0]] * 4


def test_a_minibatch_gets_the_rewards_without_a_copy_of_the_rest():
    hook = RewardNormalizer()
    minibatch = Minibatch.of({("next", "reward"): torch.tensor([[1.0], [3.0]]), "action": torch.zeros(2, 1)})
    with pytest.raises(HookError, match="no rewards were taken in so far; register update_reward_stats"):
        hook.normalize_reward(minibatch)
    hook.load_state_dict(
        {"statistics": {"mean": torch.tensor(2.0), "std": torch.tensor(0.5)}, "decay": 0.9, "scale": 1.0}
    )
    assert hook.normalize_reward(minibatch) is minibatch
    assert rewards(minibatch).tolist() == [[-2.0], [2.0]]


def test_the_state_is_all_there_is(batch):
    hook, resumed = RewardNormalizer(decay=0.9, scale=2.0), RewardNormalizer()
    hook.update_reward_stats(batch(10))
    resumed.load_state_dict(hook.state_dict())
    for other in (hook, resumed):
        other.update_reward_stats(batch(10, seed=1))
    drawn = batch(10, seed=2)
    assert torch.equal(rewards(hook.normalize_reward(drawn)), rewards(resumed.normalize_reward(drawn)))


def test_another_entry_can_be_normalised(batch):
    hook = RewardNormalizer(reward_key="action")
    whole = batch(10)
    hook.update_reward_stats(whole)
    assert hook.normalize_reward(whole)["action"].mean().item() == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(HookError, match="no entry 'prize'"):
        RewardNormalizer(reward_key="prize").update_reward_stats(whole)


def test_in_a_run_it_normalises_what_the_loss_sees(batch, make_trainer):
    seen = []
    trainer = make_trainer([batch(50)])
    RewardNormalizer().register(trainer)
    trainer.register_op("post_loss", lambda sub_batch: seen.append(rewards(sub_batch)))
    trainer.train()
    assert seen[0].std().item() == pytest.approx(1.0, rel=1e-5)
