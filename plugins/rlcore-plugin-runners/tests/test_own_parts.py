"""Envs and networks of a script's own, policies with a memory, and collectors by name."""

import gymnasium
import numpy as np
import pytest
import rlcore_plugin_runners as runners
import torch
from rlcore_plugin_runners.references import found, reference_to
from torch import nn

from rlcore.errors import ConfigError


class Corridor(gymnasium.Env):
    """Walks to its end; the reward is the action."""

    def __init__(self, length=5, continuous=False):
        self.length = length
        self.observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
        box = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = box if continuous else gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.place += 1
        reward = float(np.ravel(action)[0])
        return np.full(2, self.place / self.length, np.float32), reward, self.place >= self.length, False, {}


class Network(nn.Module):
    """Probabilities of actions, and a value."""

    def __init__(self, observation_shape, output_size, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(*observation_shape, width), nn.Tanh())
        self.policy, self.value = nn.Linear(width, output_size), nn.Linear(width, 1)

    def forward(self, observation, prev_action, prev_reward):
        features = self.body(observation)
        return torch.softmax(self.policy(features), -1), self.value(features).squeeze(-1)


class Gaussian(Network):
    """Means, log standard deviations, and a value."""

    def __init__(self, observation_shape, action_size):
        super().__init__(observation_shape, action_size)
        self.log_std = nn.Parameter(torch.zeros(action_size))

    def forward(self, observation, prev_action, prev_reward):
        features = self.body(observation)
        return self.policy(features), self.log_std, self.value(features).squeeze(-1)


class Values(Network):
    """A value of each action."""

    def forward(self, observation, prev_action, prev_reward):
        return self.policy(self.body(observation))


class Remembers(Network):
    """Reads the last reward."""

    def forward(self, observation, prev_action, prev_reward):
        return super().forward(observation * prev_reward, None, None)


def trained(algo, agent, sampler=runners.SerialSampler, n_steps=512, **env_kwargs):
    made = sampler(Corridor, {"length": 7, **env_kwargs}, 8, 4, max_decorrelation_steps=0)
    affinity = {"workers_cpus": [0, 1]}
    runner = runners.MinibatchRl(algo, agent, made, n_steps=n_steps, log_interval_steps=64, affinity=affinity)
    runner.train()
    return runner


OFF_POLICY = {"min_steps_learn": 64, "replay_size": 1_000}
MEMORY = {**OFF_POLICY, "batch_T": 8, "batch_B": 4, "warmup_T": 4, "store_rnn_state_interval": 4}
PARTS = {
    "categorical": lambda: (runners.PPO(minibatches=2), runners.CategoricalPgAgent(Network, {"width": 8}), {}),
    "gaussian": lambda: (runners.A2C(), runners.GaussianPgAgent(Gaussian), {"continuous": True}),
    "values": lambda: (runners.DQN(**OFF_POLICY), runners.DqnAgent(ModelCls=Values), {}),
    "lstm": lambda: (runners.PPO(minibatches=2), runners.LstmAgent(model_kwargs={"lstm_size": 8}), {}),
    "r2d1": lambda: (runners.R2D1(**MEMORY), runners.R2d1Agent(model_kwargs={"lstm_size": 8}), {}),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_script_train(name):
    algo, agent, env_kwargs = PARTS[name]()
    runner = trained(algo, agent, n_steps=64, **env_kwargs)
    before = {key: value.clone() for key, value in runner.agent.state_dict().items()}
    algo, agent, env_kwargs = PARTS[name]()
    after = trained(algo, agent, **env_kwargs).agent.state_dict()
    assert any(not torch.equal(before[key], after[key]) for key in before)
    assert agent.model.parts() == runner.agent.model.parts()


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [runners.CpuSampler, runners.GpuSampler])
@pytest.mark.parametrize(
    ("name", "updates"),
    [("categorical", 128), ("values", 120)],  # of 16 batches the first one is below min_steps_learn
)
def test_parts_of_a_script_are_in_every_process(name, updates, sampler):
    algo, agent, env_kwargs = PARTS[name]()
    assert trained(algo, agent, sampler, **env_kwargs).trainer.progress.updates == updates


@pytest.mark.slow
def test_what_is_learnt_is_right():
    """The reward is the action: the better one becomes likely."""
    runner = trained(runners.PPO(learning_rate=1e-2), runners.CategoricalPgAgent(Network), n_steps=8_192)
    probabilities, _ = runner.agent.model.actor.network(torch.zeros(1, 2), None, None)
    assert probabilities[0, 1] > 0.9


def test_a_script_in_a_file_of_its_own(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("class Mine:\n    pass\n")
    assert found(f"{path}:Mine") is found(f"{path}:Mine")
    assert reference_to("EnvCls", Corridor) == f"{__name__}:Corridor"
    with pytest.raises(ConfigError, match="has no attribute 'Yours'"):
        found(f"{path}:Yours")


def game(**keys):
    return runners.GpuSampler(runners.gym_make, {"id": "CartPole-v1"}, 8, 4, **keys)


REFUSED = {
    "no name": (
        lambda: trained(runners.A2C(), runners.CategoricalPgAgent(type("Local", (Network,), {}))),
        "no name",
    ),
    "a memory": (lambda: trained(runners.A2C(), runners.CategoricalPgAgent(Remembers)), "There is no last action"),
    "outputs": (lambda: trained(runners.A2C(), runners.CategoricalPgAgent(Values)), "has to return"),
    "values": (lambda: trained(runners.DQN(**OFF_POLICY), runners.DqnAgent(ModelCls=Network)), "has to return values"),
    "arguments": (lambda: trained(runners.A2C(), runners.CategoricalPgAgent(Network, {"wide": 1})), "cannot be made"),
    "objects": (lambda: trained(runners.A2C(), runners.FfAgent(), of=object()), "a config holds numbers"),
    "SAC": (lambda: trained(runners.SAC(), runners.SacAgent(Network), continuous=True), "takes no network of your own"),
    "R2D1": (lambda: trained(runners.DQN(**OFF_POLICY), runners.R2d1Agent()), "train it with R2D1"),
    "interval": (lambda: runners.R2D1(store_rnn_state_interval=0), "store_rnn_state_interval = 0"),
    "no counterpart": (lambda: runners.DQN(updates_per_sync=2), "updates_per_sync = 2: it has no counterpart"),
    "epsilons": (lambda: runners.DqnAgent(eps_final_min=0.001), "one share of random actions"),
    "collector": (
        lambda: game(CollectorCls=type("Mine", (runners.GpuResetCollector,), {})),
        "Mine: the sampler's class",
    ),
    "elsewhere": (lambda: game(CollectorCls=runners.CpuResetCollector), "acts elsewhere"),
    "evaluates": (lambda: game(CollectorCls=runners.GpuEvalCollector), "the sampler's class"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    make, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        make()


def test_collectors_by_name(caplog):
    with caplog.at_level("INFO"):
        game(CollectorCls=runners.GpuWaitResetCollector, eval_CollectorCls=runners.GpuEvalCollector)
    assert "no step of a batch is left empty" in caplog.text


def test_epsilon_falls_for_as_many_steps_as_the_algorithm_says():
    def fraction(algo, **keys):
        sampler = runners.SerialSampler(runners.gym_make, {"id": "CartPole-v1"}, 4, 1, max_decorrelation_steps=0)
        return runners.MinibatchRl(algo, runners.DqnAgent(**keys), sampler, 4_000_000).config()["model"][
            "epsilon_fraction"
        ]

    assert fraction(runners.DQN()) == 0.25
    assert fraction(runners.DQN(eps_steps=400_000)) == 0.1
    assert fraction(runners.DQN(), eps_itr_max=100_000) == 0.1


def test_beta_rises_for_as_many_steps_as_the_algorithm_says():
    algo = runners.DQN(prioritized_replay=True)
    (half,) = algo.schedulers(25_000_000)
    assert (half["final"] * 0.4, half["fraction"]) == (pytest.approx(0.7), 1.0)
    (whole,) = algo.schedulers(100_000_000)
    assert (whole["final"] * 0.4, whole["fraction"]) == (pytest.approx(1.0), 0.5)


def test_runs_of_one_setting_differ_in_their_seeds(tmp_path):
    sampler = runners.SerialSampler(runners.gym_make, {"id": "CartPole-v1"}, 4, 1, max_decorrelation_steps=0)
    runner = runners.MinibatchRl(runners.A2C(), runners.FfAgent(), sampler, 64)
    seeds = []
    for run_id in (0, "1", "name"):
        with runners.logger_context(tmp_path, run_id, "x", override_prefix=True):
            seeds.append(runner.config()["run"]["seed"])
    assert seeds == [1, 2, 1]
