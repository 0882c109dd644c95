"""Learners train on episodes; what episodes keep, and what they refuse."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from rlcore_plugin_learners.episode_columns import EpisodeColumns

from rlcore import AlgorithmConfig, BCConfig, DQNConfig, IMPALAConfig, PPOConfig, SingleAgentEpisode
from rlcore.errors import ConfigError, NotSupportedError

OBSERVATIONS, ACTIONS = Box(-1, 1, (3,), np.float32), Discrete(2)


def episode_of(steps, seed=0, **end):
    generator = np.random.default_rng(seed)
    episode = SingleAgentEpisode(observation_space=OBSERVATIONS, action_space=ACTIONS)
    episode.add_env_reset(generator.normal(size=3).astype(np.float32), {"at": 0})
    for number in range(steps):
        last = end if number == steps - 1 else {}
        outputs = {"action_logp": np.float32(-0.7), "action_dist_inputs": np.zeros(2, np.float32)}
        episode.add_env_step(
            generator.normal(size=3).astype(np.float32),
            int(generator.integers(0, 2)),
            float(number),
            extra_model_outputs=outputs,
            **last,
        )
    return episode


def config_of(kind, num_learners=0):
    config = kind().environment(observation_space=OBSERVATIONS, action_space=ACTIONS)
    return config.learners(num_learners=num_learners).rl_module(model_config={"hidden": [8]})


def test_an_episode_has_its_steps_and_goes_on_after_a_cut():
    episode = episode_of(4)
    assert (len(episode), episode.t, episode.get_return(), episode.is_done) == (4, 4, 6.0, False)
    assert (episode.env_steps(), episode.agent_steps()) == (4, 4)
    assert episode.get_infos(0) == {"at": 0}
    assert episode.get_rewards([0, -1]) == [0.0, 3.0]
    after = episode.cut()
    assert (len(after), after.t_started, after.id_) == (0, 4, episode.id_)
    np.testing.assert_array_equal(after.get_observations(0), episode.get_observations(-1))
    after.add_env_step(np.zeros(3), 1, 2.0, terminated=True)
    assert after.is_done
    arrays = episode.to_numpy()
    assert arrays is episode
    assert arrays.get_observations().shape == (5, 3)
    assert arrays.get_extra_model_outputs("action_dist_inputs", slice(0, 2)).shape == (2, 2)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="2 observations and 2 rewards"):
        SingleAgentEpisode(observations=[0, 1], actions=[0, 0], rewards=[0, 0], len_lookback_buffer=0)
    with pytest.raises(ConfigError, match="1 actions and 2 rewards"):
        SingleAgentEpisode(observations=[0, 1, 2], actions=[0], rewards=[0, 0], len_lookback_buffer=0)
    with pytest.raises(NotSupportedError, match="say len_lookback_buffer=0"):
        SingleAgentEpisode(observations=[0, 1], actions=[0], rewards=[0])
    episode = episode_of(2)
    with pytest.raises(ConfigError, match="it has begun already"):
        episode.add_env_reset(np.zeros(3))
    with pytest.raises(ConfigError, match="extra_model_outputs are"):
        episode.add_env_step(np.zeros(3), 0, 0.0)
    with pytest.raises(NotSupportedError, match="no steps are kept in front"):
        episode.cut(2)
    with pytest.raises(ConfigError, match="follows add_env_reset"):
        SingleAgentEpisode().add_env_step(0, 0, 0.0)
    with pytest.raises(ConfigError, match="nothing goes on after it"):
        episode_of(1, terminated=True).cut()


def test_columns_of_an_episode():
    episode = episode_of(3, terminated=True)
    plain = EpisodeColumns().of(episode)
    assert {name: len(column) for name, column in plain.items()} == dict.fromkeys(plain, 3)
    assert plain["terminateds"].tolist() == [False, False, True]
    assert not plain["truncateds"].any()
    following = EpisodeColumns(next_obs=True).of(episode)
    np.testing.assert_array_equal(following["new_obs"][:-1], following["obs"][1:])
    longer = EpisodeColumns(one_more=True).of(episode_of(3))
    assert longer["loss_mask"].tolist() == [True, True, True, False]
    assert longer["truncateds"].tolist() == [False, False, True, False]
    assert longer["rewards"].tolist() == [0, 1, 2, 0]
    assert longer["actions"][-1] == longer["actions"][-2]
    assert EpisodeColumns(one_more=True).of(SingleAgentEpisode()) == {}


@pytest.mark.parametrize("kind", [PPOConfig, BCConfig, DQNConfig, IMPALAConfig], ids=lambda kind: kind.__name__)
def test_learners_train_on_episodes_of_any_length(kind):
    config = config_of(kind)
    if kind is IMPALAConfig:
        config.env_runners(rollout_fragment_length=5)
    learner = config.build_learner()
    episodes = [episode_of(4, 1, terminated=True), episode_of(9, 2), episode_of(4, 3, truncated=True)]
    results = learner.update(episodes=episodes)
    assert np.isfinite(results["default_policy"]["total_loss"])
    assert results["__all_modules__"]["num_env_steps_trained"] == 17
    assert results["__all_modules__"]["learner_connector"]["connector_pipeline_timer"] > 0
    assert learner.metrics.peek_results(results) is results
    with pytest.raises(ConfigError, match="no rows"):
        learner.update(episodes=[SingleAgentEpisode()])


def test_episodes_go_to_the_modules_that_they_name():
    config = config_of(BCConfig).multi_agent(policies={"a", "b"})
    episodes = [episode_of(3, 1), episode_of(5, 2)]
    for episode, module_id in zip(episodes, "ab", strict=True):
        episode.module_id = module_id
    results = config.build_learner().update(episodes=episodes)
    assert [results[name]["num_module_steps_trained"] for name in "ab"] == [3, 5]


def test_advantages_that_a_batch_has_stay():
    learner = config_of(PPOConfig).build_learner()
    columns = EpisodeColumns(one_more=True).of(episode_of(6, terminated=True))
    told = columns | {"advantages": np.ones(7, np.float32), "value_targets": np.ones(7, np.float32)}
    data = {"default_policy": {name: torch.as_tensor(column) for name, column in told.items()}}
    assert (learner._completed(data)["default_policy"]["advantages"] == 1).all()
    assert (
        learner.update(told)["default_policy"]["policy_loss"]
        != learner.update(columns)["default_policy"]["policy_loss"]
    )


def test_two_learners_share_whole_episodes():
    group = config_of(PPOConfig, 2).build_learner_group()
    try:
        episodes = [episode_of(steps, steps, terminated=True) for steps in (3, 9, 4, 2, 0, 1)]
        results = group.update(episodes=episodes)
        assert [one["default_policy"]["num_module_steps_trained"] for one in results] == [10 + 2, 9 + 3]
        later = group.update(episodes=episodes[:1], async_update=True)
        weights = [answer.get() for answer in group.foreach_learner(lambda learner: learner.get_state("rl_module"))]
    finally:
        group.shutdown()
    assert later == []
    for name, weight in weights[0]["rl_module"]["default_policy"].items():
        np.testing.assert_array_equal(weight, weights[1]["rl_module"]["default_policy"][name])


def test_episodes_are_columns_too():
    learner = config_of(BCConfig).build_learner()
    columns = EpisodeColumns().of(episode_of(3, 1))
    losses = [
        one["default_policy"]["total_loss"]
        for one in (learner.update(episodes=[columns]), learner.update(episodes=[episode_of(3, 1)]))
    ]
    assert losses[1] == pytest.approx(losses[0], abs=1e-2)
    assert AlgorithmConfig().add_default_connectors_to_learner_pipeline is False


class Agents:
    """The spaces of an env of several agents, as RLlib's have them."""

    possible_agents = ("a", "b")

    def __init__(self, *counts):
        self.counts = dict(zip(self.possible_agents, counts, strict=True))

    def get_observation_space(self, agent):
        return OBSERVATIONS

    def get_action_space(self, agent):
        return Discrete(self.counts[agent])


def test_modules_are_built_for_the_spaces_that_all_agents_have():
    config = BCConfig().multi_agent(policies={"p"})
    spec = config.get_multi_rl_module_spec(env=Agents(2, 2)).module_specs["p"]
    assert (spec.observation_space, spec.action_space) == (OBSERVATIONS, ACTIONS)
    with pytest.raises(ConfigError, match="different spaces"):
        config.build_learner(env=Agents(2, 3))
