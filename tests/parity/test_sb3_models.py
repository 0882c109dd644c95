"""Models that Stable-Baselines3 and sb3-contrib trained act alike here, learn alike, and go on."""

from __future__ import annotations

import copy
import warnings

import gymnasium
import numpy as np
import pytest
import torch

sb3 = pytest.importorskip("stable_baselines3", reason="pip install rlcore[parity]")
contrib = pytest.importorskip("sb3_contrib", reason="pip install rlcore[parity]")

from rlcore_plugin_import.importing import import_model  # noqa: E402
from sb3_contrib.common.wrappers import ActionMasker  # noqa: E402
from stable_baselines3.common.noise import NormalActionNoise  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402

import rlcore  # noqa: E402

CART, PENDULUM = "CartPole-v1", "Pendulum-v1"
SMALL = {"net_arch": [32, 16]}
REPLAY = {"learning_starts": 40, "batch_size": 32, "buffer_size": 2_000, "policy_kwargs": SMALL}
NOISE = NormalActionNoise(np.zeros(1), 0.2 * np.ones(1))


def allowing_all(env):
    return np.ones(2, dtype=bool)


# class, env, arguments, frames
MODELS = {
    "A2C": (sb3.A2C, CART, {}, 60),
    "PPO": (sb3.PPO, CART, {"n_steps": 64}, 128),
    "PPO, boxes": (sb3.PPO, PENDULUM, {"n_steps": 64, "policy_kwargs": {"net_arch": {"pi": [16], "vf": [32, 8]}}}, 128),
    "PPO, gSDE": (sb3.PPO, PENDULUM, {"n_steps": 64, "use_sde": True, "sde_sample_freq": 4}, 128),
    "PPO, AdamW": (
        sb3.PPO,
        CART,
        {"n_steps": 64, "policy_kwargs": {"optimizer_class": torch.optim.AdamW, "activation_fn": torch.nn.ReLU}},
        128,
    ),
    "DQN": (sb3.DQN, CART, REPLAY, 100),
    "QRDQN": (contrib.QRDQN, CART, {**REPLAY, "policy_kwargs": {**SMALL, "n_quantiles": 7}}, 100),
    "SAC": (sb3.SAC, PENDULUM, REPLAY, 80),
    "SAC, fixed": (sb3.SAC, PENDULUM, {**REPLAY, "ent_coef": 0.1, "train_freq": 2, "gradient_steps": 3}, 80),
    "TD3": (sb3.TD3, PENDULUM, {**REPLAY, "action_noise": NOISE}, 80),
    "DDPG": (sb3.DDPG, PENDULUM, REPLAY, 80),
    "CrossQ": (contrib.CrossQ, PENDULUM, REPLAY, 80),
    "RecurrentPPO": (
        contrib.RecurrentPPO,
        CART,
        {"n_steps": 64, "policy_kwargs": {"lstm_hidden_size": 12, "n_lstm_layers": 2, "net_arch": [8]}},
        128,
    ),
    "MaskablePPO": (contrib.MaskablePPO, CART, {"n_steps": 64}, 128),
    "TRPO": (contrib.TRPO, PENDULUM, {"n_steps": 64}, 128),
    "TQC": (contrib.TQC, PENDULUM, REPLAY, 80),
    "ARS, linear": (contrib.ARS, PENDULUM, {"n_delta": 1}, 400),
    "ARS, layers": (contrib.ARS, PENDULUM, {"n_delta": 1, "policy_kwargs": SMALL}, 400),
    "ARS, numbered": (contrib.ARS, CART, {"n_delta": 1, "policy_kwargs": SMALL}, 100),
}
ACT_ONLY = [name for name in MODELS if name.startswith(("TRPO", "ARS"))]
TRAINABLE = [name for name in MODELS if name not in ACT_ONLY]
# whose next steps are compared, which begin from the moments
STEPS = ["PPO, boxes", "DQN", "QRDQN", "SAC", "TD3", "DDPG", "TQC"]


def trained(name, file, env=None):
    """Train a model of theirs for some steps, and save it."""
    kind, env_id, arguments, frames = MODELS[name]
    arguments = copy.deepcopy(arguments)  # a model adds to them
    env = env or (ActionMasker(gymnasium.make(env_id), allowing_all) if name == "MaskablePPO" else env_id)
    policy = "MlpLstmPolicy" if name == "RecurrentPPO" else "LinearPolicy" if name == "ARS, linear" else "MlpPolicy"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(policy, env, seed=1, device="cpu", **arguments)
        model.learn(frames)
    model.save(file)
    return model


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return a model of theirs by name with the file of it, each trained once."""
    folder, made = tmp_path_factory.mktemp("models"), {}

    def model(name):
        if name not in made:
            file = folder / f"model-{len(made)}.zip"
            made[name] = (trained(name, file), file)
        return made[name]

    return model


@pytest.fixture
def take(models, workdir):
    """Return a model of theirs, and what its file became here."""

    def taken(which, **options):
        model, file = models(which)
        return model, import_model(file, MODELS[which][1], **options)

    return taken


def observations(env_id, count=1_000):
    space = gymnasium.make(env_id).observation_space
    low, high = np.clip(space.low, -3, 3), np.clip(space.high, -3, 3)
    return np.random.default_rng(0).uniform(low, high, (count, *space.shape)).astype(np.float32)


def their_actions(model, rows):
    """Return their likeliest actions; where they remember, of episodes of 50 observations."""
    if not isinstance(model, contrib.RecurrentPPO):
        return model.predict(rows, deterministic=True)[0]
    state, actions = None, []
    for number, row in enumerate(rows):
        start = np.array([number % 50 == 0])
        action, state = model.predict(row, state=state, episode_start=start, deterministic=True)
        actions.append(action)
    return np.array(actions)


def our_actions(agent, rows):
    if not agent.remembers:
        return agent.act(rows)
    actions = []
    for number, row in enumerate(rows):
        if number % 50 == 0:
            agent.reset()
        actions.append(agent.act(row))
    return np.array(actions)


@pytest.mark.parametrize("name", MODELS)
def test_acts_alike(name, take):
    model, imported = take(name)
    rows = observations(MODELS[name][1])
    actions = our_actions(rlcore.load_agent(imported.folder), rows)
    np.testing.assert_allclose(actions, their_actions(model, rows), rtol=0, atol=1e-6)
    assert imported.frames == model.num_timesteps


def resumed(imported):
    return rlcore.build(rlcore.load_config(imported.folder / "config.toml"), resume=True)


def optimizers_of(model):
    policy = model.policy
    if hasattr(policy, "optimizer"):
        return {"policy": policy.optimizer, "q_values": policy.optimizer}
    further = {"temperature": model.ent_coef_optimizer} if getattr(model, "ent_coef_optimizer", None) else {}
    return {"actor": policy.actor.optimizer, "critics": policy.critic.optimizer, **further}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TRAINABLE if name not in STEPS])
def test_has_the_moments_of_the_file(name, take):
    model, imported = take(name)
    parts = resumed(imported).trainer.parts.stateful
    sections = [key.partition(".")[2] for key in parts if key.startswith("optimizer.")]
    for section in sections:
        here, there = parts[f"optimizer.{section}"], optimizers_of(model)[section]
        for key in ("step", "exp_avg", "exp_avg_sq", "square_avg"):
            ours, theirs = (_sums(one, key) for one in (here, there))
            assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-12), (section, key)
        group, other = here.param_groups[0], there.param_groups[0]
        assert all(group[key] == other[key] for key in ("lr", "eps", "weight_decay") if key in other)


def _sums(optimizer, key):
    """Return numbers that are equal however the parameters are divided: sums, or the largest count of steps."""
    values = [state[key] for state in optimizer.state.values() if key in state]
    if key == "step":
        return max(float(value) for value in values)
    return [float(sum(value.double().pow(power).sum() for value in values)) for power in (1, 2)]


def both_networks(name, model, run):
    """Return functions from observations and actions in [-1, 1] to outputs: theirs and ours, by the optimizer."""
    policy, ours = model.policy, run.trainer.model
    if name in ("DQN", "QRDQN"):
        net = policy.q_net if name == "DQN" else policy.quantile_net
        values = (lambda rows: net(rows).transpose(1, 2)) if name == "QRDQN" else net
        mine = ours.q_values.quantiles if name == "QRDQN" else ours.q_values
        return {"q_values": (lambda rows, _: values(rows), lambda rows, _: mine(rows))}
    if hasattr(policy, "action_net"):

        def theirs(rows, _):
            return torch.cat([policy.get_distribution(rows).distribution.mean, policy.predict_values(rows)], -1)

        def here(rows, _):
            return torch.cat([ours.actor(rows)[..., : rows_of(ours)], ours.critic(rows)], -1)

        return {"policy": (theirs, here)}
    critics = policy.critic

    def values(rows, unit):  # [critic, sample, quantile]
        found = critics(rows, unit)
        return torch.stack(found) if isinstance(found, tuple) else found.transpose(0, 1)

    return {"critics": (values, lambda rows, unit: ours.critics.values(rows, unit))}


def rows_of(model):
    return model.actor.distribution.num_parameters // 2


@pytest.mark.parametrize("name", STEPS)
def test_the_next_step_of_an_optimizer_moves_the_networks_alike(name, take, models, tmp_path):
    """From equal weights and moments, by the gradient of the same function of the outputs."""
    _, imported = take(name)
    model = type(models(name)[0]).load(models(name)[1])  # the step changes it
    run = resumed(imported)
    model.policy.set_training_mode(False)
    rows = torch.from_numpy(observations(MODELS[name][1], 64))
    unit = torch.linspace(-1, 1, 64).unsqueeze(-1)
    for section, (theirs, ours) in both_networks(name, model, run).items():
        optimizers = (optimizers_of(model)[section], run.trainer.parts.stateful[f"optimizer.{section}"])
        for _ in range(3):
            for function, optimizer in zip((theirs, ours), optimizers, strict=True):
                optimizer.zero_grad()
                (function(rows, unit) - 1).square().mean().backward()
                optimizer.step()
        with torch.no_grad():
            torch.testing.assert_close(ours(rows, unit), theirs(rows, unit), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINABLE)
def test_goes_on(name, take):
    frames = 400 if MODELS[name][1] == PENDULUM else 256
    model, imported = take(name, further=frames)
    run = resumed(imported)
    before = {key: tensor.clone() for key, tensor in run.trainer.model.state_dict().items()}
    updates = run.trainer.progress.updates
    assert run.trainer.train().frames >= model.num_timesteps + frames
    assert run.trainer.progress.updates > updates
    assert any(not torch.equal(tensor, before[key]) for key, tensor in run.trainer.model.state_dict().items())


@pytest.mark.slow
@pytest.mark.parametrize("name", ACT_ONLY)
def test_what_cannot_go_on_acts_is_exported_and_says_so(name, take, cli):
    _, imported = take(name)
    assert any("is not trained" in note for note in imported.notes)
    folder = str(imported.folder)
    assert cli("evaluate", folder, "--episodes", "1").code == 0
    assert cli("export", folder, "--format", "torch-export").code == 0
    refused = cli("train", "--resume", folder)
    assert refused.code == 2
    assert "[loss]: missing" in refused.err


def test_settings_of_an_off_policy_model(take):
    config = take("SAC, fixed")[1].translation.config
    assert config["collector"] == {"frames_per_batch": 2}
    assert config["buffer"]["updates_per_batch"] == 3
    assert config["loss"]["temperature"] == 0.1
    assert take("TD3", name="td3")[1].translation.config["model"]["noise"] == pytest.approx(0.2)


@pytest.mark.parametrize("name", ["PPO, boxes", "SAC"])
def test_normalised_observations(name, workdir):
    envs = VecNormalize(DummyVecEnv([lambda: gymnasium.make(PENDULUM)] * 2), clip_obs=2.0, gamma=0.9, epsilon=1e-4)
    model = trained(name, workdir / "model.zip", envs)
    envs.save(workdir / "normalize.pkl")
    imported = import_model(workdir / "model.zip", PENDULUM, normalize=str(workdir / "normalize.pkl"), further=200)
    rows = observations(PENDULUM)
    actions = rlcore.load_agent(imported.folder).act(rows)
    np.testing.assert_allclose(
        actions, model.predict(envs.normalize_obs(rows), deterministic=True)[0], rtol=0, atol=1e-6
    )
    run = resumed(imported)
    rewards = run.trainer.parts.stateful["transform.reward-norm"].state_dict()["moments"]
    assert rewards["squares"] / rewards["count"] == pytest.approx(envs.ret_rms.var)
    run.trainer.train()
    seen = run.trainer.parts.stateful["transform.running-observation-norm"].state_dict()["count"]
    assert seen > envs.obs_rms.count


def test_statistics_that_stand_still(workdir):
    envs = VecNormalize(DummyVecEnv([lambda: gymnasium.make(PENDULUM)]), training=False, norm_reward=False)
    trained("PPO, boxes", workdir / "model.zip", envs)
    envs.save(workdir / "normalize.pkl")
    imported = import_model(workdir / "model.zip", PENDULUM, normalize=str(workdir / "normalize.pkl"))
    assert any("stood still" in note for note in imported.notes)
    assert [section["use"] for section in imported.translation.config["transform"]] == [
        "transforms:running-observation-norm",
        "transforms:action-clip",
    ]


class Masked(gymnasium.Wrapper):
    """CartPole, in which one action is forbidden where the cart is far to that side."""

    def action_masks(self):
        position = self.unwrapped.state[0]
        return np.array([position > -0.01, position < 0.01])

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        return observation, {**info, "action_mask": self.action_masks().astype(np.int8)}

    def step(self, action):
        observation, *rest, info = self.env.step(action)
        return observation, *rest, {**info, "action_mask": self.action_masks().astype(np.int8)}


def test_masks(workdir):
    gymnasium.register("MaskedCartPole-v0", entry_point=lambda: Masked(gymnasium.make(CART).unwrapped))
    try:
        model = trained("MaskablePPO", workdir / "model.zip", gymnasium.make("MaskedCartPole-v0"))
        made = import_model(workdir / "model.zip", "MaskedCartPole-v0", overrides=["env.mask_key='action_mask'"])
        agent = rlcore.load_agent(made.folder)
        rows = observations(CART)
        masks = np.stack([rows[:, 0] > -1, rows[:, 0] < 1], -1)
        expected = model.predict(rows, deterministic=True, action_masks=masks)[0]
        assert (agent.act({"observation": rows, "action_mask": masks.astype(np.int8)}) == expected).all()
        assert resumed(made).trainer.train().frames > made.frames
    finally:
        gymnasium.registry.pop("MaskedCartPole-v0")


@pytest.mark.parametrize(
    ("kind", "arguments", "named"),
    [
        (sb3.SAC, {"use_sde": True}, "use_sde"),
        (sb3.PPO, {"policy_kwargs": {"activation_fn": torch.nn.ELU}}, "ELU"),
        (sb3.PPO, {"policy_kwargs": {"optimizer_class": torch.optim.RAdam}}, "radam"),
        (sb3.PPO, {"policy_kwargs": {"squash_output": True}, "use_sde": True}, "squash_output"),
        (sb3.DDPG, {"train_freq": (1, "episode")}, None),
        (
            contrib.RecurrentPPO,
            {"policy_kwargs": {"enable_critic_lstm": False, "shared_lstm": True}},
            "enable_critic_lstm",
        ),
    ],
)
def test_what_cannot_be_taken_along_is_named(kind, arguments, named, workdir):
    model = kind("MlpLstmPolicy" if kind is contrib.RecurrentPPO else "MlpPolicy", PENDULUM, **arguments)
    model.save(workdir / "model.zip")
    if named is None:
        made = import_model(workdir / "model.zip", PENDULUM, further=30_000)
        assert any("train_freq" in note for note in made.notes)
        return
    with pytest.raises(rlcore.errors.ConfigError, match=named):
        import_model(workdir / "model.zip", PENDULUM)
    assert not (workdir / "runs").exists()


def test_another_env_is_named(models, workdir):
    _, file = models("PPO, boxes")
    with pytest.raises(rlcore.errors.RlcoreError, match="model was trained with observations in Box"):
        import_model(file, "MountainCarContinuous-v0")
