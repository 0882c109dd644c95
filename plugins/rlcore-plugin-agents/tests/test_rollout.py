"""Rollouts of an env alone, and of the env of a script: entries, ends, policies, seeds and exploration."""

import copy

import numpy as np
import pytest
import torch
from rlcore_plugin_testing.toy import ToyEnv
from tensordict import TensorDict
from tensordict.nn import ProbabilisticTensorDictModule, ProbabilisticTensorDictSequential, TensorDictModule

import rlcore
from rlcore import ConfigError, EnvError, ExplorationType, Factory, rollout, set_exploration_type


def toy(**keys):
    return ToyEnv(ToyEnv.Config(**keys), None)


def made(**keys):
    """Return a factory with a toy env, and a model whose policy is far from its mode."""
    make = Factory(total_frames=96, seed=3)
    env = make.env("testing:toy", **keys)
    return make, env


def test_a_rollout_has_the_entries_of_a_batch():
    batch = rollout(toy(ends=["terminated"]), 20, break_when_any_done=False)
    assert batch.batch_size == (2, 20)
    assert set(batch.keys(True, True)) == {
        "observation",
        "action",
        *(("next", name) for name in ("observation", "reward", "done", "terminated", "truncated")),
    }
    assert batch["next", "reward"].shape == (2, 20, 1)
    assert batch["next", "reward"][0, :5, 0].tolist() == [1, 2, 3, 1, 2]
    assert batch["next", "done"][0, :9, 0].nonzero().flatten().tolist() == [2, 7]
    done = batch["next", "done"][..., 0]
    inside = ~done[:, :-1]
    assert torch.equal(batch["next", "observation"][:, :-1][inside], batch["observation"][:, 1:][inside])
    assert torch.allclose(batch["next", "observation"][0, 2, 0], torch.tensor(0.3)), "the last one of its episode"
    assert batch["observation"][0, 3, 0] == 0, "the first one of the next"


def test_a_rollout_stops_at_the_first_end_of_an_episode():
    batch = rollout(toy(episode_lengths=[7, 4]), 20)
    assert batch.batch_size == (2, 4)
    assert batch["next", "done"][..., 0].tolist() == [[False] * 4, [False, False, False, True]]
    assert rollout(toy(episode_lengths=[7]), 3).batch_size == (2, 3)


def test_steps_that_only_reset_are_masked():
    batch = rollout(toy(reset_mode="next_step"), 12, break_when_any_done=False)
    mask = batch["collector", "mask"][..., 0]
    assert torch.equal(mask[:, 1:], ~batch["next", "done"][:, :-1, 0])
    assert "collector" not in rollout(toy(reset_mode="next_step"), 12)


def test_double_precision_is_seen_in_single():
    env = Factory(total_frames=96).env("gymnasium", id="InvertedPendulum-v5")
    assert env.observation_space.dtype == np.float64
    assert env.rollout(3)["observation"].dtype == torch.float32


@pytest.mark.parametrize("steps", [0, -1])
def test_a_rollout_without_steps_is_refused(steps):
    with pytest.raises(ConfigError, match=f"steps = {steps}"):
        rollout(toy(), steps)


def test_random_actions_follow_the_seed_alone():
    first = rollout(toy(actions="bounded"), 3, seed=5)
    np.random.default_rng(0)
    assert torch.equal(rollout(toy(actions="bounded"), 3, seed=5)["action"], first["action"])
    assert not torch.equal(rollout(toy(actions="bounded"), 3, seed=6)["action"], first["action"])
    space = toy(actions="bounded").spec.action_space
    assert all(space.contains(action) for action in first["action"].reshape(-1, 2).numpy())


def test_a_policy_is_sampled_and_described():
    make, env = made()
    policy = make.model("testing:toy").policy
    batch = env.rollout(3, policy)
    assert set(batch.keys()) >= set(policy.describe(torch.zeros(1, 2), torch.zeros(1, 1)))
    again, other = (env.rollout(3, policy, seed=8) for _ in range(2))
    assert torch.equal(again["action"], other["action"])
    assert not torch.equal(again["action"], policy.mode(again["observation"].reshape(6, 3)).reshape(2, 3, 1))


def test_a_batch_may_go_into_a_loss():
    make, env = made()
    batch = env.rollout(3, make.model("testing:toy").policy)
    assert not batch["action"].requires_grad
    critic = torch.nn.Linear(3, 1)
    (critic(batch["observation"]) * batch["sample_log_prob"]).sum().backward()
    assert critic.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", ["DETERMINISTIC", "MODE"])
def test_a_deterministic_rollout_takes_the_mode(kind):
    make, env = made()
    policy = make.model("testing:toy").policy
    with set_exploration_type(ExplorationType[kind]):
        batch = env.rollout(3, policy)
        assert rlcore.exploration_type() is ExplorationType[kind]
    expected = policy.mode(batch["observation"].reshape(6, 3)).reshape(2, 3, 1)
    assert torch.equal(batch["action"], expected)
    assert "sample_log_prob" not in batch
    assert rlcore.exploration_type() is ExplorationType.RANDOM


def test_a_policy_without_a_mean_says_so():
    make, env = made()
    policy = make.model("testing:toy").policy
    with set_exploration_type(ExplorationType.MEAN):
        with pytest.raises(ConfigError, match=r"has no method mean.*DETERMINISTIC"):
            env.rollout(3, policy)
        policy.mean = lambda observation: torch.full((len(observation), 1), 0.25)
        assert (env.rollout(3, policy)["action"] == 0.25).all()


def test_the_mean_of_squashed_actions_is_not_their_mode():
    make = Factory(total_frames=96)
    env = make.env("gymnasium", id="Pendulum-v1")
    policy = make.model("mlp", hidden=[8]).policy
    taken = {}
    for kind in (ExplorationType.MEAN, ExplorationType.MODE):
        with set_exploration_type(kind):
            taken[kind] = env.rollout(1, policy, seed=2)["action"]
    mean, mode = taken.values()
    assert mean.sign() == mode.sign()
    assert 0 < mean.abs() < mode.abs(), "squashing pulls the mean towards the middle"


def test_any_callable_from_tensordict_to_tensordict_is_a_policy():
    def policy(seen):
        assert seen.batch_size == (2,)
        return seen.set("action", seen["observation"][:, :1] * 2).set("extra", torch.ones(2, 4))

    batch = rollout(toy(), 3, policy)
    assert torch.equal(batch["action"], batch["observation"][..., :1] * 2)
    assert batch["extra"].shape == (2, 3, 4)


def test_modules_of_tensordict_follow_the_exploration_type():
    network = TensorDictModule(lambda x: (x[:, :1], torch.ones(len(x), 1)), ["observation"], ["loc", "scale"])
    sampler = ProbabilisticTensorDictModule(
        ["loc", "scale"],
        ["action"],
        distribution_class=torch.distributions.Normal,
        return_log_prob=True,
        default_interaction_type=ExplorationType.RANDOM,
    )
    policy = ProbabilisticTensorDictSequential(network, sampler)
    assert not torch.equal((batch := rollout(toy(), 3, policy))["action"], batch["loc"])
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        assert torch.equal((batch := rollout(toy(), 3, policy))["action"], batch["loc"])


@pytest.mark.parametrize("policy", [lambda seen: None, lambda seen: TensorDict({}, batch_size=[2]), 3])
def test_what_is_no_policy_is_refused(policy):
    with pytest.raises(ConfigError, match="rollout: "):
        rollout(toy(), 3, policy)


def test_the_env_of_a_script_shows_what_the_policy_sees():
    make, env = made(num_envs=1)
    assert env.rollout(3)["observation"].shape == (1, 3, 3)
    make.transform("transforms:frame-stack", frames=2)
    make.transform("transforms:reward-scale", scale=10.0)
    batch = env.rollout(3, break_when_any_done=False)
    assert batch["observation"].shape == (1, 3, 6)
    assert batch["next", "reward"].flatten().tolist() == [10, 20, 30]
    assert env.observation_space.shape == env.spec.observation_space.shape == (6,)
    assert [type(transform).__name__ for transform in env.transform] == ["FrameStack", "RewardScale"]
    assert "FrameStack, RewardScale" in repr(env)


def test_rollouts_leave_training_where_it_is():
    def weights(rollouts):
        make, env = made()
        make.transform("transforms:running-observation-norm")
        make.model("testing:toy")
        make.estimator("testing:toy")
        make.loss("testing:toy")
        make.collector(frames_per_batch=8)
        make.buffer(epochs=1, minibatch_size=8)
        trainer = make.trainer(optimizer=make.optimizer("sgd", lr=0.01), progress_bar=False)
        for _ in trainer:
            for _ in range(rollouts):
                env.rollout(4, make.context.model.policy)
        return copy.deepcopy(make.context.model.state_dict())

    without, with_rollouts = weights(0), weights(2)
    assert all(torch.equal(without[name], with_rollouts[name]) for name in without)


def test_rollouts_of_a_script_repeat_with_its_seed_and_differ_among_themselves():
    first, second = (made()[1] for _ in range(2))
    batches = [first.rollout(3), first.rollout(3)]
    assert not torch.equal(batches[0]["action"], batches[1]["action"])
    for batch in batches:
        assert torch.equal(second.rollout(3)["action"], batch["action"])


def test_the_env_of_a_script_is_an_env():
    _, env = made(num_envs=1)
    with pytest.raises(EnvError, match=r"call reset\(\) before step"):
        env.step(np.zeros((1, 1), dtype=np.float32))
    observation = np.array(env.reset(seed=4))
    assert env.observation_space.contains(observation[0])
    step = env.step(np.stack([env.action_space.sample()]))
    assert step.reward.tolist() == [1]
    env.close()
    env.close()
    assert np.array_equal(env.reset(seed=4), observation), "closed envs are made again when they are needed"


def test_statistics_of_an_observation_norm_are_taken_again():
    make = Factory(total_frames=96, seed=3)
    env = make.env("testing:toy", episode_lengths=[9])
    make.transform("gymnasium:observation-norm", frames=200)
    first = env.transform[0]
    make.transform("gymnasium:observation-norm", frames=200)
    before = first.loc
    first.init_stats(num_iter=50)
    assert first.loc.shape == first.scale.shape == (3,)
    assert not np.array_equal(first.loc, before)
    raw = rollout(toy(num_envs=1, episode_lengths=[9]), 50, break_when_any_done=False)
    steps = raw["next", "observation"][0, :, 0].where(~raw["next", "done"][0, :, 0], torch.tensor(0.0)).numpy()
    np.testing.assert_allclose(first.loc[0], steps.mean(), rtol=1e-5)
    np.testing.assert_allclose(first.scale[0], steps.std(), rtol=1e-5)
    second = env.transform[1]
    second.init_stats(num_iter=500)
    assert abs(second.loc[0]) < 0.2, "it sees what the first one leaves"
    with pytest.raises(ConfigError, match="at least two frames"):
        first.init_stats(num_iter=1)


def test_an_env_of_another_library_is_refused():
    class Other:
        spec = None

    with pytest.raises(
        TypeError, match=r"rollout: a Other is no env of rlcore; build one with Factory; .* env\.rollout"
    ):
        rollout(Other(), 3)
