"""`OnPolicyRunner`: its config, its files, and its updates beside those of rsl_rl."""

import copy
import inspect
from importlib.util import find_spec

import pytest
import torch
from rlcore_plugin_rsl_rl import OnPolicyRunner
from rlcore_plugin_rsl_rl.train_cfg import OF_SCRIPTS, Algorithm, TrainCfg
from rlcore_plugin_testing.compare import difference
from tensordict import TensorDict

import rlcore
from rlcore.errors import ConfigError, RlcoreError, StorageError

from .vec_envs import Hover, OneGroup

needs_rsl_rl = pytest.mark.skipif(find_spec("rsl_rl") is None, reason="rsl-rl-lib is not installed")
CFG = {
    "class_name": "OnPolicyRunner",
    "seed": 3,
    "num_steps_per_env": 8,
    "save_interval": 2,
    "obs_groups": {"actor": ["policy"], "critic": ["policy", "critic"]},
    "algorithm": {"class_name": "rsl_rl.algorithms:PPO", "num_learning_epochs": 2, "num_mini_batches": 2},
    "actor": {
        "class_name": "MLPModel",
        "hidden_dims": [16, 8],
        "obs_normalization": True,
        "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.8},
    },
    "critic": {"class_name": "MLPModel", "hidden_dims": [16]},
}


def changed(**changes):
    """Return the config with some keys of it, or of its tables, changed."""
    cfg = copy.deepcopy(CFG)
    for name, value in changes.items():
        cfg[name] = {**cfg[name], **value} if isinstance(value, dict) and name in cfg else value
    return cfg


def runner_of(env=None, log_dir=None, **changes):
    return OnPolicyRunner(env or Hover(4, limit=5, shares=False), changed(**changes), log_dir, "cpu")


def test_it_trains_and_writes_what_rsl_rl_does(tmp_path, capsys):
    runner = runner_of(log_dir=str(tmp_path))
    runner.learn(3, init_at_random_ep_len=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model_0.pt", "model_2.pt", "rlcore"]
    assert {path.name for path in (tmp_path / "rlcore").iterdir()} >= {"checkpoints", "tensorboard", "config.toml"}
    assert runner.trainer.progress.iterations == 3
    assert "Episode/limit" in capsys.readouterr().err
    agent = rlcore.load_agent(tmp_path / "rlcore")
    observations = Hover(4, shares=False).get_observations()
    expected = runner.get_inference_policy("cpu")(observations)
    groups = {name: group.numpy() for name, group in observations.items()}
    torch.testing.assert_close(torch.as_tensor(agent.act(groups)), expected)


def test_the_env_is_neither_reset_nor_seeded_nor_closed():
    env = Hover(4, limit=5, shares=False)
    env.reset = env.seed = env.close = lambda *_: pytest.fail("it was")
    env.episode_length_buf += 3
    runner = runner_of(env)
    runner.learn(1)
    ends = runner.trainer.batch.get(("next", "truncated"))[..., 0]
    assert ends[:, 1].all()
    del runner


def test_iterations_go_on():
    runner = runner_of()
    runner.learn(2)
    runner.learn(2)
    assert runner.trainer.progress.iterations == 4
    assert runner.current_learning_iteration == 2  # as in rsl_rl, the first of a call has the number of the last one


def test_a_file_brings_back_what_was_saved(tmp_path):
    path = str(tmp_path / "model.pt")
    runner, other = runner_of(), runner_of(seed=4)
    runner.learn(2)
    runner.save(path, {"note": 1})
    assert other.load(path) == {"note": 1}
    assert other.current_learning_iteration == 1
    for name, value in runner.trainer.model.state_dict().items():
        assert torch.equal(value, other.trainer.model.state_dict()[name]), name
    for name, optimizer in runner.alg.optimizers.items():
        assert difference(optimizer.state_dict(), other.alg.optimizers[name].state_dict()) is None
    other.learn(1)
    fresh = runner_of(seed=4)
    fresh.load(path, {"actor": True})
    assert fresh.current_learning_iteration == 0
    assert not fresh.alg.optimizers["actor"].state


def test_a_file_of_other_networks_is_refused(tmp_path):
    path = str(tmp_path / "model.pt")
    runner_of().save(path)
    with pytest.raises(StorageError, match="actor_state_dict: the weights are of another network"):
        runner_of(actor={"hidden_dims": [4]}).load(path)
    with pytest.raises(ConfigError, match="there is no 'rnd' here"):
        runner_of().load(path, {"rnd": True})


@pytest.mark.parametrize(
    ("changes", "place", "expected"),
    [
        ({"num_steps_per_env": 4}, "collector.frames_per_batch", 16),
        ({"save_interval": 7}, "checkpoint.every", {"iterations": 7}),
        ({"seed": 9}, "run.seed", 9),
        ({"run_name": "walk"}, "run.name", "walk"),
        ({"torch_compile_mode": "default"}, "learner.compile", True),
        ({"obs_groups": {"critic": ["critic"]}}, "model.critic_observations", ["critic"]),
        ({"algorithm": {"num_learning_epochs": 3}}, "buffer.epochs", 3),
        ({"algorithm": {"num_mini_batches": 4}}, "buffer.minibatch_size", 8),
        ({"algorithm": {"clip_param": 0.1}}, "loss.clip_epsilon", 0.1),
        ({"algorithm": {"gamma": 0.9}}, "estimator.gamma", 0.9),
        ({"algorithm": {"lam": 0.8}}, "estimator.lmbda", 0.8),
        ({"algorithm": {"value_loss_coef": 0.25}}, "loss.critic_coef", 0.5),
        ({"algorithm": {"entropy_coef": 0.5}}, "loss.entropy_coef", 0.5),
        ({"algorithm": {"learning_rate": 0.5}}, "optimizer.1.lr", 0.5),
        ({"algorithm": {"max_grad_norm": 0.5}}, "learner.max_grad_norm", 0.5),
        ({"algorithm": {"optimizer": "adamw"}}, "optimizer.0.weight_decay", 0.01),
        ({"algorithm": {"optimizer": "rmsprop"}}, "optimizer.0.use", "core:rmsprop"),
        ({"algorithm": {"use_clipped_value_loss": False}}, "loss.clip_value", False),
        ({"algorithm": {"schedule": "fixed"}}, "loss.desired_kl", 0.0),
        ({"algorithm": {"desired_kl": None}}, "loss.desired_kl", 0.0),
        ({"algorithm": {"desired_kl": 0.02}}, "loss.desired_kl", 0.02),
        ({"algorithm": {"normalize_advantage_per_mini_batch": True}}, "estimator.standardise", False),
        ({"algorithm": {"normalize_advantage_per_mini_batch": True}}, "loss.normalize_advantage", True),
        ({"actor": {"hidden_dims": [4]}}, "model.actor_hidden", [4]),
        ({"critic": {"hidden_dims": [4]}}, "model.critic_hidden", [4]),
        ({"critic": {"activation": "mish"}}, "model.critic_activation", "mish"),
        ({"critic": {"obs_normalization": True}}, "model.critic_normalization", True),
        ({"actor": {"distribution_cfg": {"std_type": "log"}}}, "model.std_type", "log"),
        ({"actor": {"distribution_cfg": {"init_std": 0.5}}}, "model.init_std", 0.5),
        ({"actor": {"distribution_cfg": {"learn_std": False}}}, "model.learn_std", False),
        ({"actor": {"distribution_cfg": {"std_range": [0.1, 2]}}}, "model.std_range", (0.1, 2.0)),
        ({"actor": None, "critic": None, "policy": {"init_noise_std": 0.5}}, "model.init_std", 0.5),
        ({"actor": None, "critic": None, "policy": {"actor_hidden_dims": [4]}}, "model.actor_hidden", [4]),
    ],
)
def test_a_key_counts(changes, place, expected):
    value = runner_of(**changes).config
    for name in place.split("."):
        value = value[int(name)] if name.isdigit() else value[name]
    assert value == expected


def test_wandb_gets_its_project():
    from rlcore_plugin_rsl_rl.train_cfg import read
    from rlcore_plugin_rsl_rl.translated import logging_sections

    for changes in (
        {"logger": {"class_name": "WandbLogWriter", "project_name": "legs"}},
        {"logger": "wandb", "wandb_project": "legs"},
    ):
        (logger,) = logging_sections(read(changed(**changes)))["logger"]
        assert logger == {"use": "wandb:wandb", "project": "legs"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_step_per_env": 3}, "num_step_per_env: rlcore does not know this key; did you mean 'num_steps_per_env'"),
        ({"algorithm": {"clip_parm": 1}}, "algorithm.clip_parm: .* did you mean 'clip_param'"),
        ({"algorithm": {"class_name": "Distillation"}}, "algorithm.class_name = 'Distillation': Input should be 'PPO'"),
        ({"algorithm": {"rnd_cfg": {"weight": 1.0}}}, "algorithm.rnd_cfg = .* rlcore has no counterpart"),
        ({"algorithm": {"symmetry_cfg": {}}}, "algorithm.symmetry_cfg = .* rlcore has no counterpart"),
        ({"algorithm": {"use_mixed_precision": True}}, "use_mixed_precision = True: rlcore has no counterpart"),
        ({"algorithm": {"num_mini_batches": 3}}, "no whole number in each of 3 minibatches"),
        ({"actor": {"class_name": "RNNModel"}}, "actor.class_name = 'RNNModel': Input should be 'MLPModel'"),
        ({"actor": {"distribution_cfg": {"class_name": "BetaDistribution"}}}, "BetaDistribution"),
        ({"actor": {"distribution_cfg": {"std": 1}}}, "actor.distribution_cfg.std: rlcore does not know this key"),
        ({"policy": {}}, "give both actor and critic, as rsl_rl 5 takes them, or policy alone"),
        ({"critic": None}, "give both actor and critic"),
        ({"logger": "neptune"}, "logger"),
        ({"check_for_nan": False}, "check_for_nan = False: .* each batch is checked"),
        ({"torch_compile_mode": "max-autotune"}, "take 'default', or None"),
        ({"obs_groups": {"teacher": ["policy"]}}, "rlcore has an actor and a critic"),
        ({"obs_groups": {"actor": ["polcy"]}}, r"obs_groups\['actor'\]: there is no group 'polcy'; the env has policy"),
        ({"num_steps_per_env": None}, "num_steps_per_env = None: Input should be a valid integer"),
    ],
)
def test_a_key_without_a_counterpart_is_refused(changes, expected):
    with pytest.raises(RlcoreError, match=expected):
        runner_of(**changes)


def test_several_processes_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="trains in one process"):
        runner_of()


def test_what_is_no_vec_env_is_refused():
    with pytest.raises(ConfigError, match="OnPolicyRunner: env is a dict without num_envs"):
        runner_of({"num": 1})


def test_the_config_of_a_runner_cannot_make_its_env(tmp_path):
    runner_of(log_dir=str(tmp_path)).learn(1)
    with pytest.raises(ConfigError, match="was given to OnPolicyRunner by a script"):
        rlcore.build(rlcore.load_config(tmp_path / "rlcore" / "config.toml"), write=False)


def test_one_group_is_for_both():
    runner = runner_of(OneGroup(4, shares=False), obs_groups={"actor": ["policy"], "critic": ["policy"]})
    runner.learn(1)
    assert runner.alg.critic.seen.size == 4


def test_a_policy_on_another_device_is_a_copy():
    runner = runner_of()
    assert runner.get_inference_policy().mlp is runner.alg.actor.mlp
    copied = runner.get_inference_policy("meta")
    assert {weight.device.type for weight in copied.parameters()} == {"meta"}
    assert {weight.device.type for weight in runner.alg.actor.parameters()} == {"cpu"}


@needs_rsl_rl
def test_every_key_of_rsl_rl_is_known():
    from rsl_rl.algorithms import PPO
    from rsl_rl.models import MLPModel
    from rsl_rl.modules.distribution import GaussianDistribution

    own = {
        "self",
        "actor",
        "critic",
        "storage",
        "device",
        "multi_gpu_cfg",
        "obs",
        "obs_groups",
        "obs_set",
        "output_dim",
    }
    for theirs, ours in (
        (PPO, Algorithm),
        (MLPModel, TrainCfg.model_fields["actor"].annotation.__args__[0]),
        (
            GaussianDistribution,
            TrainCfg.model_fields["actor"].annotation.__args__[0].model_fields["distribution_cfg"].annotation,
        ),
    ):
        parameters = inspect.signature(theirs.__init__).parameters
        assert set(parameters) - own <= set(ours.model_fields)
        for name, field in ours.model_fields.items():
            if name in parameters and not field.is_required():
                default = parameters[name].default
                assert field.default == (list(default) if name == "hidden_dims" else default), name


@needs_rsl_rl
@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_an_update_is_that_of_rsl_rl(tmp_path, std_type):
    """The same batch and the same weights give the same weights, in one epoch of one minibatch."""
    from rsl_rl.runners import OnPolicyRunner as Theirs

    cfg = changed(
        algorithm={"num_learning_epochs": 1, "num_mini_batches": 1, "schedule": "fixed", "learning_rate": 1e-2},
        actor={"distribution_cfg": {**CFG["actor"]["distribution_cfg"], "std_type": std_type}},
        critic={"obs_normalization": True},
    )
    ours = OnPolicyRunner(Hover(16, limit=5, shares=False), cfg, None, "cpu")
    theirs = Theirs(Hover(16, limit=5, shares=False), {**copy.deepcopy(cfg)}, None, "cpu")
    ours.save(str(tmp_path / "before.pt"))
    for _ in range(2):
        ours.save(str(tmp_path / "before.pt"))
        theirs.load(str(tmp_path / "before.pt"))
        ours.learn(1)
        update(theirs.alg, ours.trainer)
        theirs.save(str(tmp_path / "theirs.pt"))
        other = runner_of(actor=cfg["actor"], critic=cfg["critic"])
        other.load(str(tmp_path / "theirs.pt"))
        for name, value in ours.trainer.model.state_dict().items():
            torch.testing.assert_close(value, other.trainer.model.state_dict()[name], rtol=2e-4, atol=2e-5, msg=name)


def update(alg, trainer):
    """Take rsl_rl's update on the batch that was collected here."""
    batch, space = trainer.batch, trainer.collector._spec.observation_space

    def observed(rows):
        return TensorDict(space.tensors(rows), batch_size=len(rows))

    rows = batch.get("observation")
    with torch.inference_mode():
        for time in range(rows.shape[1]):
            alg.act(observed(rows[:, time]))
            alg.transition.actions = batch.get("action")[:, time]
            alg.transition.actions_log_prob = alg.actor.get_output_log_prob(alg.transition.actions)
            reward, done, cut = (batch.get(("next", name))[:, time, 0] for name in ("reward", "done", "truncated"))
            alg.process_env_step(observed(rows[:, time]), reward, done, {"time_outs": cut})
        alg.compute_returns(observed(trainer.collector._storage.observation[-1]))
    alg.update()


def test_what_scripts_read_is_left_to_them():
    runner_of(**dict.fromkeys(OF_SCRIPTS, "anything"))
