"""The runners have the names, arguments, loop and clocks of rlpyt's."""

import inspect
from functools import partial

import pytest
import rlcore_plugin_runners as runners

import rlcore
from rlcore import hookimpl

RUNNER = ["algo", "agent", "sampler", "n_steps", "seed", "affinity", "log_interval_steps"]
SAMPLER = [
    *("EnvCls", "env_kwargs", "batch_T", "batch_B", "CollectorCls", "max_decorrelation_steps", "TrajInfoCls"),
    *("eval_n_envs", "eval_CollectorCls", "eval_env_kwargs", "eval_max_steps", "eval_max_trajectories"),
]
CONTEXT = ["log_dir", "run_ID", "name", "log_params", "snapshot_mode", "override_prefix", "use_summary_writer"]


@pytest.mark.parametrize("name", ["MinibatchRl", "MinibatchRlEval", "AsyncRl", "AsyncRlEval"])
def test_arguments_of_runners(name):
    assert list(inspect.signature(getattr(runners, name)).parameters)[: len(RUNNER)] == RUNNER


@pytest.mark.parametrize("name", ["SyncRl", "SyncRlEval"])
def test_sync_runners_take_the_same(name):
    plain = runners.SerialSampler(runners.gym_make, {"id": "CartPole-v1"}, 4, 2, max_decorrelation_steps=0)
    keys = {"seed": 3, "log_interval_steps": 16, "affinity": [{}]}
    runner = getattr(runners, name)(runners.A2C(), runners.FfAgent(), plain, n_steps=64, **keys)
    assert (runner.seed, runner.log_interval_itrs, runner.world_size) == (3, 2, 1)


@pytest.mark.parametrize(
    "name",
    ["SerialSampler", "CpuSampler", "GpuSampler", "AlternatingSampler", "AsyncCpuSampler", "AsyncGpuSampler"],
)
def test_arguments_of_samplers(name):
    assert list(inspect.signature(getattr(runners, name)).parameters) == SAMPLER


def test_arguments_of_the_context():
    assert list(inspect.signature(runners.logger_context).parameters) == CONTEXT


DEFAULTS = {
    "A2C": {
        "discount": 0.99,
        "learning_rate": 1e-3,
        "value_loss_coeff": 0.5,
        "entropy_loss_coeff": 0.01,
        "gae_lambda": 1,
    },
    "PPO": {"value_loss_coeff": 1, "minibatches": 4, "epochs": 4, "ratio_clip": 0.1, "linear_lr_schedule": True},
    "DQN": {"batch_size": 32, "min_steps_learn": 5e4, "replay_ratio": 8, "target_update_interval": 312},
    "SAC": {"batch_size": 256, "min_steps_learn": 1e4, "replay_ratio": 256, "target_update_tau": 0.005},
    "TD3": {"batch_size": 100, "replay_ratio": 100, "policy_update_interval": 2, "target_noise": 0.2},
    "DDPG": {"batch_size": 64, "replay_ratio": 64, "target_update_tau": 0.01, "q_learning_rate": 1e-3},
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_of_algorithms(name):
    algo = getattr(runners, name)()
    assert {key: getattr(algo, key) for key in DEFAULTS[name]} == DEFAULTS[name]


class Calls:
    def __init__(self):
        self.seen = []

    @hookimpl
    def evaluation(self, trainer):
        self.seen.append(f"evaluate {trainer.progress.iterations}")

    @hookimpl
    def pre_steps_log(self):
        self.seen.append("obtain_samples")

    @hookimpl
    def post_steps(self):
        self.seen.append("optimize_agent")


def test_the_loop_of_minibatch_rl_eval(monkeypatch):
    """Evaluate before training; then sample and optimise, and evaluate at each log point."""
    sampler = runners.SerialSampler(
        runners.gym_make, {"id": "CartPole-v1"}, 4, 2, max_decorrelation_steps=0, eval_n_envs=1
    )
    runner = runners.MinibatchRlEval(runners.A2C(), runners.FfAgent(), sampler, n_steps=32, log_interval_steps=16)
    calls = Calls()
    monkeypatch.setattr(rlcore, "build", partial(rlcore.build, hooks=[calls]))
    assert runner.startup() == 4
    runner.trainer.train()
    step = ["obtain_samples", "optimize_agent"]
    assert calls.seen == ["evaluate 0", *step, *step, "evaluate 2", *step, *step, "evaluate 4"]
