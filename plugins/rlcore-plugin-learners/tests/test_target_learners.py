"""The learners with target networks: what they learn with modules of their own, what comes back, what is refused."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from rlcore_plugin_learners.originals import TABLE

from rlcore import (
    APPOConfig,
    DefaultDQNTorchRLModule,
    DefaultSACTorchRLModule,
    DQNConfig,
    QNetAPI,
    RLModule,
    RLModuleSpec,
    SACConfig,
    SACTorchLearner,
    TargetNetworkAPI,
)
from rlcore.errors import ConfigError, NotSupportedError, UnwrittenEntryError

OBSERVATIONS, CHOICES, BOX = Box(-1, 1, (3,), np.float32), Discrete(2), Box(-2, 4, (2,), np.float32)
MODELS = {DQNConfig: {"hidden": [16]}, SACConfig: {"fcnet_hiddens": [16]}, APPOConfig: {"hidden": [16]}}


def rows(seed=0, count=40, actions=CHOICES):
    generator = np.random.default_rng(seed)
    observations = generator.normal(size=(count, 3)).astype(np.float32)
    if actions == CHOICES:
        chosen = generator.integers(0, 2, count)
        rewards = chosen == (observations[:, 0] > 0)
    else:
        chosen = generator.uniform(-2, 4, (count, 2)).astype(np.float32)
        rewards = -np.abs(chosen - 3).sum(-1)
    return {
        "obs": observations,
        "new_obs": generator.normal(size=(count, 3)).astype(np.float32),
        "actions": chosen,
        "action_logp": np.full(count, np.log(0.5), np.float32),
        "rewards": rewards.astype(np.float32),
        "terminateds": np.ones(count, bool),
    }


def config_of(kind, actions=CHOICES, **settings):
    config = kind().environment(observation_space=OBSERVATIONS, action_space=actions).learners(num_learners=0)
    return config.rl_module(model_config=MODELS[kind]).training(**settings)


def update(learner, count, actions=CHOICES, first=0):
    for number in range(first, first + count):
        batch = rows(number, actions=actions)
        if hasattr(learner.config, "clip_param"):
            batch["loss_mask"] = np.arange(40) % 5 < 4
        clocks = {f"num_env_steps_{name}_lifetime": 40 * number for name in ("sampled", "trained")}
        results = learner.update(batch, timesteps=clocks)
    return results["default_policy"]


@pytest.mark.parametrize(
    "settings",
    [{}, {"num_atoms": 21, "v_min": -1, "v_max": 2}, {"dueling": False, "double_q": False, "tau": 0.1}],
    ids=str,
)
def test_values_become_those_of_the_rewards(settings):
    learner = config_of(DQNConfig, lr=1e-2, **settings).build_learner()
    update(learner, 120)
    module, batch = learner.module["default_policy"], {"obs": torch.as_tensor(rows(999)["obs"])}
    right = (batch["obs"][:, 0] > 0).long()
    assert (module.forward_inference(batch)["actions"] == right).float().mean() > 0.85
    value = module.compute_q_values(batch)["qf_preds"].gather(1, right.unsqueeze(1)).mean()
    assert value.item() == pytest.approx(1, abs=0.15)


def test_random_actions_are_as_many_as_epsilon_says():
    module = config_of(DQNConfig, epsilon=[[0, 1.0], [100, 0.0]]).build_learner().module["default_policy"]
    batch = {"obs": torch.zeros(400, 3)}
    best = module.forward_inference(batch)["actions"]
    assert (module.forward_exploration(batch, t=100)["actions"] == best).all()
    assert 100 < (module.forward_exploration(batch, t=0)["actions"] == best).sum() < 300


@pytest.mark.slow
@pytest.mark.parametrize("actions", [BOX, CHOICES], ids=["box", "choices"])
def test_the_actor_takes_what_is_rewarded(actions):
    rates = {"actor_lr": 1e-2, "critic_lr": 1e-2, "alpha_lr": 1e-2}
    learner = config_of(SACConfig, actions, target_entropy=-4.0 if actions == BOX else 0.1, **rates).build_learner()
    update(learner, 250, actions)
    module, observations = learner.module["default_policy"], torch.as_tensor(rows(999)["obs"])
    inputs = module.forward_inference({"obs": observations})["action_dist_inputs"]
    taken = module.get_inference_action_dist_cls().from_logits(inputs).mode()
    if actions == BOX:
        assert (taken - 3).abs().mean() < 1.0  # 2 at first
    else:
        assert (taken == (observations[:, 0] > 0)).float().mean() > 0.85


def test_the_policy_follows_its_rewards_and_the_old_one_follows_it():
    config = config_of(APPOConfig, lr=1e-2, target_network_update_freq=0.01, use_kl_loss=True)
    learner = config.env_runners(rollout_fragment_length=5).build_learner()
    results = update(learner, 41)
    module, observations = learner.module["default_policy"], torch.as_tensor(rows(999)["obs"])
    taken = module.forward_inference({"obs": observations})["action_dist_inputs"].argmax(-1)
    assert (taken == (observations[:, 0] > 0)).float().mean() > 0.85
    assert results["num_target_updates"] == 20  # every 0.01 * 8 * 2 * 500 = 80 steps of 1,600
    assert 0 < results["mean_kl_loss"] < 1


CASES = [(DQNConfig, CHOICES), (SACConfig, BOX), (SACConfig, CHOICES), (APPOConfig, CHOICES)]


@pytest.mark.parametrize(("kind", "actions"), CASES, ids=["dqn", "sac", "discrete sac", "appo"])
def test_learning_goes_on_from_a_checkpoint_as_without_one(kind, actions, tmp_path):
    settings = {"target_network_update_freq": 80} if kind != APPOConfig else {"target_network_update_freq": 0.01}
    config = config_of(kind, actions, **settings)
    if kind == APPOConfig:
        config.env_runners(rollout_fragment_length=5).training(use_kl_loss=True)
    learner = config.build_learner()
    update(learner, 4, actions)
    inputs = {"obs": torch.as_tensor(rows()["obs"])}
    expected = learner.module["default_policy"].forward_inference(inputs)
    learner.save_to_path(tmp_path)
    again = type(learner).from_checkpoint(tmp_path)
    told = [update(one, 4, actions, first=4) for one in (learner, again)]
    np.testing.assert_equal(*told)
    states = [one.get_state() for one in (learner, again)]
    for name, weight in states[0]["rl_module"]["default_policy"].items():
        np.testing.assert_array_equal(weight, states[1]["rl_module"]["default_policy"][name])
    assert states[0]["extra"] == states[1]["extra"]
    acting = type(learner.module["default_policy"]).from_checkpoint(tmp_path / "rl_module" / "default_policy")
    for name, value in acting.forward_inference(inputs).items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=0)
    assert set(acting.get_state(inference_only=True)) < set(acting.get_state())


def test_a_module_for_acting_has_no_critics_and_takes_the_weights_that_it_needs():
    learner = config_of(SACConfig, BOX).build_learner()
    module = learner.module["default_policy"]
    spec = RLModuleSpec(DefaultSACTorchRLModule, OBSERVATIONS, BOX, MODELS[SACConfig], inference_only=True)
    acting = spec.build()
    acting.set_state(module.get_state())
    assert not hasattr(acting, "qf")
    batch = {"obs": torch.as_tensor(rows()["obs"])}
    theirs, ours = (one.forward_inference(batch)["action_dist_inputs"] for one in (module, acting))
    torch.testing.assert_close(theirs, ours, rtol=0, atol=0)


def test_errors_of_rows_are_in_the_results_in_their_order():
    learner = config_of(DQNConfig, lr=1e-9).build_learner()
    batch = rows()
    whole = learner.update(batch)["default_policy"]["td_error"]
    parts = learner.update(batch, minibatch_size=16)["default_policy"]["td_error"]
    assert whole.shape == (40,)
    np.testing.assert_allclose(parts, whole, atol=1e-5)


def test_rows_count_by_their_weights_steps_and_mask():
    learner = config_of(DQNConfig, lr=1e-9, n_step=3, gamma=0.5).build_learner()
    batch = rows() | {"terminateds": np.zeros(40, bool)}
    with pytest.raises(UnwrittenEntryError, match="no column 'n_step'"):
        learner.update(batch)
    losses = [
        learner.update(batch | {"n_step": np.full(40, steps), **more})["default_policy"]["qf_loss"]
        for steps, more in ((1, {}), (3, {}), (3, {"weights": np.full(40, 0.5)}), (3, {"loss_mask": np.zeros(40) == 0}))
    ]
    assert losses[0] != pytest.approx(losses[1])
    assert losses[2] == pytest.approx(losses[1] / 2, rel=1e-4)
    assert losses[3] == pytest.approx(losses[1], rel=1e-4)


def test_a_clock_that_no_update_is_told_is_asked_for(caplog):
    learner = config_of(DQNConfig).build_learner()
    learner.update(rows())
    learner.update(rows())
    assert caplog.text.count("target networks stay as they are") == 1
    assert "num_env_steps_sampled_lifetime" in caplog.text


@pytest.mark.parametrize(("kind", "actions"), CASES[:3], ids=["dqn", "sac", "discrete sac"])
def test_modules_come_and_go_with_targets_of_their_own(kind, actions):
    learner = config_of(kind, actions, target_network_update_freq=0, tau=1.0).build_learner()
    spec = learner.config.get_rl_module_spec()
    learner.add_module(module_id="b", module_spec=spec)
    learner.update({"default_policy": rows(actions=actions), "b": rows(1, actions=actions)})
    for network, target in learner.module["b"].get_target_network_pairs():
        for name, weight in network.state_dict().items():
            torch.testing.assert_close(target.state_dict()[name], weight, rtol=0, atol=0)
    learner.remove_module("b")
    assert set(learner.last_update_ts_by_mid) == {"default_policy"}
    update(learner, 1, actions)


class Plain(RLModule):
    def setup(self):
        self.layer = torch.nn.Linear(3, 2)


def test_a_module_without_what_the_learner_asks_for_is_refused():
    config = config_of(DQNConfig).rl_module(rl_module_spec=RLModuleSpec(Plain))
    with pytest.raises(ConfigError, match=r"Plain is no QNetAPI and no TargetNetworkAPI, which DQNTorchLearner asks"):
        config.build_learner()
    config.multi_agent(policies_to_train=[]).build_learner()
    for api in (QNetAPI, TargetNetworkAPI):
        names = [name for name in vars(api) if name[0] != "_"]
        for name in names:
            with pytest.raises(NotImplementedError, match=f"{api.__name__} has no {name}"):
                getattr(api(), name)(*([{}] if name in ("compute_q_values", "forward_target") else []))


REFUSED = [
    (DQNConfig, {"noisy": True}, "DQNConfig.noisy is True: the networks have no noise"),
    (DQNConfig, {"burn_in_len": 2}, "modules here have no memory"),
    (DQNConfig, {"td_error_loss_fn": "hubr"}, "td_error_loss_fn is 'hubr'; it takes huber or mse; did you mean"),
    (DQNConfig, {"num_atoms": 0}, "num_atoms is 0"),
    (DQNConfig, {"num_atoms": 3, "v_min": 1, "v_max": 1}, "v_min is less"),
    (DQNConfig, {"tau": 0}, "tau is 0"),
    (DQNConfig, {"target_network_update_freq": -1}, "it is 0 or above"),
    (SACConfig, {"lr": 1e-3}, "SACConfig.lr is 0.001: SAC has actor_lr, critic_lr and alpha_lr"),
    (SACConfig, {"initial_alpha": 0}, "initial_alpha is 0"),
    (SACConfig, {"target_entropy": "no"}, "target_entropy is 'no'"),
    (SACConfig, {"actor_lr": [[1, 2]]}, "actor_lr is"),
    (APPOConfig, {"vtrace": False}, "APPOConfig.vtrace is False: targets are those of V-trace"),
    (APPOConfig, {"opt_type": "rmsprop"}, "override configure_optimizers_for_module"),
    (APPOConfig, {"tau": 2}, "tau is 2"),
]


@pytest.mark.parametrize(("kind", "settings", "told"), REFUSED)
def test_what_cannot_be_is_refused_by_name(kind, settings, told):
    with pytest.raises((ConfigError, NotSupportedError), match=told):
        kind().training(**settings)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ({"hidden": [3], "fcnet_hiddens": [3]}, "there is no 'hidden'"),
        ({"fcnet_hiddens": [3], "vf_share_layers": True}, "layers of their own"),
        ({"fcnet_activation": "sin"}, "fcnet_activation takes"),
    ],
)
def test_settings_of_networks_that_sac_has_not_are_refused(model, told):
    with pytest.raises((ConfigError, NotSupportedError), match=told):
        config_of(SACConfig, BOX).rl_module(model_config=model).build_learner()


def test_noisy_layers_and_other_spaces_are_refused():
    with pytest.raises(NotSupportedError, match="noisy layers"):
        config_of(DQNConfig).rl_module(model_config={"noisy": True}).build_learner()
    with pytest.raises(ConfigError, match="no spaces"):
        DefaultSACTorchRLModule()
    with pytest.raises(ConfigError, match="discrete action space"):
        DefaultDQNTorchRLModule(OBSERVATIONS, BOX)
    with pytest.raises(NotSupportedError, match="observations are flat here"):
        DefaultSACTorchRLModule(Box(0, 1, (4, 4), np.float32), BOX)


OWN = sorted(set(TABLE["names"]["SACTorchLearner"]) - set(TABLE["names"]["Learner"]))


@pytest.mark.parametrize("name", OWN)
def test_methods_that_sac_has_besides_are_called(name):
    calls = []

    def method(self, *args, **kwargs):
        calls.append(name)
        return getattr(SACTorchLearner, name)(self, *args, **kwargs)

    own = type("Own", (SACTorchLearner,), {name: method})
    for actions in (BOX, CHOICES):
        update(config_of(SACConfig, actions).learners(learner_class=own).build_learner(), 1, actions)
    assert calls


@pytest.mark.slow
def test_compiled_updates_are_those_of_eager_ones():
    weights = []
    for compiled in (False, True):
        config = config_of(APPOConfig, target_network_update_freq=0, tau=0.5).env_runners(rollout_fragment_length=5)
        learner = config.framework(torch_compile_learner=compiled).build_learner()
        update(learner, 4)
        weights.append(learner.get_state()["rl_module"]["default_policy"])
    for name, weight in weights[0].items():
        np.testing.assert_allclose(weights[1][name], weight, atol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "actions"), [CASES[1], CASES[3]], ids=["sac", "appo"])
def test_two_learners_have_equal_weights(kind, actions):
    config = config_of(kind, actions, target_network_update_freq=0)
    if kind == APPOConfig:
        config.env_runners(rollout_fragment_length=5)
    group = config.learners(num_learners=2).build_learner_group()
    try:
        batch = rows(actions=actions) | ({"loss_mask": np.arange(40) % 5 < 4} if kind == APPOConfig else {})
        for _ in range(2):
            results = group.update(batch)
        asked = group.foreach_learner(lambda learner: learner.module["default_policy"].get_state())
        states = [one.get() for one in asked]
    finally:
        group.shutdown()
    assert len(results) == 2
    for name, weight in states[0].items():
        np.testing.assert_array_equal(weight, states[1][name])
