"""Each name of rlpyt's classes, overridden in turn: it is called, or the class is refused by name."""

import inspect

import pytest
import rlcore_plugin_runners as runners

from rlcore.errors import NotSupportedError
from rlcore.types import originals

NAMES = originals("rlcore_plugin_runners")["names"]
OFF_POLICY = {"min_steps_learn": 32, "replay_size": 200, "batch_size": 8, "replay_ratio": 1}
SEQUENCES = {"min_steps_learn": 32, "replay_size": 400, "batch_T": 8, "batch_B": 2, "warmup_T": 4}
ALGOS = {
    "A2C": lambda kind: kind(),
    "PPO": lambda kind: kind(minibatches=2, epochs=1),
    "R2D1": lambda kind: kind(**SEQUENCES, store_rnn_state_interval=4),
    **dict.fromkeys(("DQN", "CategoricalDQN", "SAC", "DDPG", "TD3"), lambda kind: kind(**OFF_POLICY)),
}
AGENT_OF = {
    "A2C": "FfAgent",
    "PPO": "FfAgent",
    "DQN": "DqnAgent",
    "CategoricalDQN": "CatDqnAgent",
    "R2D1": "R2d1Agent",
    "SAC": "SacAgent",
    "DDPG": "DdpgAgent",
    "TD3": "Td3Agent",
}
SAMPLERS = [name for name in NAMES if name.endswith("Sampler")]
RUNNERS = [name for name in NAMES if "Rl" in name]
AGENTS = [name for name in NAMES if name.endswith("Agent")]
# that start processes, or train networks for images
SLOW = {*SAMPLERS, "AsyncRl", "AsyncRlEval", *(name for name in AGENTS if "Atari" in name)} - {"SerialSampler"}


def algo_of(agent):
    """Return the algorithm that trains an agent."""
    if "R2d1" in agent:
        return "R2D1"
    names = {"CatDqn": "CategoricalDQN", "Dqn": "DQN", "Sac": "SAC", "Ddpg": "DDPG", "Td3": "TD3"}
    return next((algo for part, algo in names.items() if part in agent), "A2C")


def recording(kind, names, calls):
    """Return a subclass that overrides names, and records each call or look at it."""

    def override(name):
        there = inspect.getattr_static(kind, name, None)

        def method(self, *args, **kwargs):
            calls.add(name)
            return there(self, *args, **kwargs)

        def look(self):
            calls.add(name)
            return there.__get__(self, type(self))

        return property(look) if isinstance(there, property) else method

    return type(f"Own{kind.__name__}", (kind,), {name: override(name) for name in names})


def train(runner="MinibatchRlEval", sampler="SerialSampler", algo="A2C", agent="FfAgent", own=None, folder=None):
    """Do all that a script does with a runner."""

    def kind_of(name):
        return own if own is not None and own.__name__ == f"Own{name}" else getattr(runners, name)

    continuous = algo in ("SAC", "DDPG", "TD3") or any(word in agent for word in ("Mujoco", "Gaussian"))
    if "Atari" in agent:
        env = {"EnvCls": runners.AtariEnv, "env_kwargs": {"game": "pong", "horizon": 8}}
    else:
        env = {"EnvCls": runners.gym_make, "env_kwargs": {"id": "Pendulum-v1" if continuous else "CartPole-v1"}}
    made = kind_of(sampler)(**env, batch_T=8, batch_B=4, max_decorrelation_steps=0, eval_n_envs=1)
    affinity = {"workers_cpus": [0, 1]}
    keys = {"n_steps": 64, "log_interval_steps": 32, "affinity": [affinity] if "Sync" in runner else affinity}
    trained = kind_of(runner)(ALGOS[algo](kind_of(algo)), kind_of(agent)(), made, **keys)
    with runners.logger_context(folder, 0, "test", snapshot_mode="last", override_prefix=True):
        trained.train()
    return trained


USES = {
    **{name: {"sampler": name, "runner": "AsyncRlEval" if "Async" in name else "MinibatchRlEval"} for name in SAMPLERS},
    **{
        name: {"runner": name, "sampler": "AsyncSerialSampler" if "Async" in name else "SerialSampler"}
        for name in RUNNERS
    },
    **{name: {"algo": name, "agent": AGENT_OF[name]} for name in ALGOS},
    **{name: {"agent": name, "algo": algo_of(name)} for name in AGENTS},
}


def construct(kind, name):
    if name in RUNNERS:
        use = {**USES[name]}
        sampler = getattr(runners, use["sampler"])(runners.gym_make, {"id": "CartPole-v1"}, 8, 4)
        kind(runners.A2C(), runners.FfAgent(), sampler, n_steps=64)
    elif name in SAMPLERS:
        kind(runners.gym_make, {"id": "CartPole-v1"}, 8, 4)
    else:
        ALGOS[name](kind) if name in ALGOS else kind()


# called by a script alone: a snapshot has the state, and this sets it in another run
BY_SCRIPTS = {"load_state_dict", "load_optim_state_dict", "parameters", "batch_size"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in USES]
)
def test_every_override_is_called_or_refused(name, tmp_path):
    kind, calls, honoured = getattr(runners, name), set(), set()
    for overridden in NAMES[name]:
        own = type("Own", (kind,), {overridden: lambda self: None})
        try:
            construct(own, name)
        except NotSupportedError as error:
            assert f"Own.{overridden} would never be called: rlpyt calls it" in str(error)  # noqa: PT017
        else:
            honoured.add(overridden)
    train(**USES[name], own=recording(kind, honoured, calls), folder=tmp_path)
    assert calls >= honoured - BY_SCRIPTS, honoured - BY_SCRIPTS - calls


def test_all_classes_are_in_the_table():
    assert set(USES) == set(NAMES)
    exported = {name for name in runners.__all__ if inspect.isclass(getattr(runners, name))}
    kinds = ("Rl", "RlEval", "Sampler", "Agent")
    assert {name for name in exported if name.endswith(kinds)} | set(ALGOS) == set(NAMES)


class CountingPPO(runners.PPO):
    """Counts its iterations, and adds a figure to what the steps returned."""

    def __init__(self, **keys):
        super().__init__(**keys)
        self.seen = []

    def optimize_agent(self, itr, samples=None, sampler_itr=None):
        opt_info = super().optimize_agent(itr, samples, sampler_itr)
        self.seen.append((itr, tuple(samples.env.reward.shape), len(opt_info.loss), self.update_counter))
        return opt_info


def test_optimize_agent_takes_the_steps_of_an_iteration(tmp_path):
    sampler = runners.SerialSampler(runners.gym_make, {"id": "CartPole-v1"}, 8, 4, max_decorrelation_steps=0)
    algo = CountingPPO(minibatches=2, epochs=2)
    runner = runners.MinibatchRl(algo, runners.FfAgent(), sampler, n_steps=64, log_interval_steps=32)
    with runners.logger_context(tmp_path, 0, "test", override_prefix=True):
        runner.train()
    assert algo.seen == [(0, (8, 4), 4, 4), (1, (8, 4), 4, 8)]


def test_what_is_recorded_is_in_the_row(tmp_path):
    from rlcore_plugin_runners import logger
    from rlcore_plugin_runners.diagnostics import read

    class Mine(runners.MinibatchRl):
        def initialize_logging(self):
            super().initialize_logging()
            self.ended = []

        def store_diagnostics(self, itr, traj_infos, opt_info):
            self.ended += [info["Length"] for info in traj_infos]
            super().store_diagnostics(itr, traj_infos, opt_info)

        def log_diagnostics(self, itr):
            with logger.tabular_prefix("Mine/"):
                logger.record_tabular("Longest", max(self.ended))
                logger.record_tabular_misc_stat("Ended", self.ended)
            super().log_diagnostics(itr)

    sampler = runners.SerialSampler(runners.gym_make, {"id": "CartPole-v1"}, 32, 4, max_decorrelation_steps=0)
    runner = Mine(runners.A2C(), runners.FfAgent(), sampler, n_steps=256, log_interval_steps=128)
    with runners.logger_context(tmp_path, 0, "test", override_prefix=True):
        runner.train()
    rows = read(tmp_path / "run_0/progress.csv")
    assert len(rows) == 2
    for row in rows:
        assert float(row["Mine/Longest"]) == float(row["Mine/EndedMax"])
    assert float(rows[-1]["LengthAverage"]) == float(rows[-1]["Mine/EndedAverage"])


def test_several_processes_call_no_override():
    class Mine(runners.A2C):
        def optimize_agent(self, itr, samples=None, sampler_itr=None):
            return super().optimize_agent(itr, samples, sampler_itr)

    sampler = runners.SerialSampler(runners.gym_make, {"id": "CartPole-v1"}, 8, 4, max_decorrelation_steps=0)
    with pytest.raises(NotSupportedError, match=r"Mine\.optimize_agent would never be called: each of the 2 processes"):
        runners.SyncRl(Mine(), runners.FfAgent(), sampler, n_steps=64, affinity=[{}, {}])


def test_a_snapshot_begins_another_run(tmp_path):
    import torch

    snapshot = train(algo="DQN", agent="DqnAgent", folder=tmp_path) and torch.load(tmp_path / "run_0/params.pkl")
    sampler = runners.SerialSampler(runners.gym_make, {"id": "CartPole-v1"}, 8, 4, max_decorrelation_steps=0)
    agent = runners.DqnAgent(initial_model_state_dict=snapshot["agent_state_dict"])
    algo = runners.DQN(**OFF_POLICY, initial_optim_state_dict=snapshot["optimizer_state_dict"])
    runner = runners.MinibatchRl(algo, agent, sampler, n_steps=64, log_interval_steps=32)
    runner.startup()
    for name, weight in agent.state_dict().items():
        assert torch.equal(weight, snapshot["agent_state_dict"][name])
    assert runner.get_itr_snapshot(0)["optimizer_state_dict"].keys() == snapshot["optimizer_state_dict"].keys()
    runner.trainer.train()
