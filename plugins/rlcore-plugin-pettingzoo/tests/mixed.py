"""A game whose agents see and do different things, and a run with a policy for each kind of them."""

import numpy as np
from gymnasium.spaces import Box, Discrete


class Mixed:
    """Walkers step left or right on a line, flyers push themselves in a plane and may leave early; none meets another.

    A game is cut off at 8 steps. Walkers see two numbers, flyers three.

    Args:
        walkers: how many.
        flyers: how many.
        flown: steps after which flyers leave.
        uneven: in some games, as their seeds say, flyers stay to the end.
    """

    def __init__(self, walkers=2, flyers=1, flown=4, uneven=False):
        self.possible_agents = [f"walker_{n}" for n in range(walkers)] + [f"flyer_{n}" for n in range(flyers)]
        self.agents = []
        self._flown, self._uneven, self._stays = flown, uneven, False

    def observation_space(self, agent):
        return Box(-99, 99, (2 if agent.startswith("walker") else 3,), np.float32)

    def action_space(self, agent):
        return Discrete(2) if agent.startswith("walker") else Box(-1, 1, (2,), np.float32)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self._random = {agent: np.random.default_rng((seed, n)) for n, agent in enumerate(self.possible_agents)}
            self._stays = self._uneven and seed % 2 == 1
        self.agents = list(self.possible_agents)
        self._places = {agent: self._random[agent].normal(size=2) for agent in self.agents}
        self._steps = 0
        return self._seen(self.agents), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert all(self.action_space(agent).contains(action) for agent, action in actions.items())
        self._steps += 1
        acting, cut = self.agents, self._steps == 8
        for agent in acting:
            move = np.asarray(actions[agent]) if agent.startswith("flyer") else 2 * int(actions[agent]) - 1
            self._places[agent] = self._places[agent] * 0.9 + move * self._random[agent].uniform(0.5, 1.5)
        out = {agent: agent.startswith("flyer") and self._steps == self._flown and not self._stays for agent in acting}
        self.agents = [agent for agent in acting if not out[agent] and not cut]
        rewards = {agent: -float(np.abs(self._places[agent]).sum()) for agent in acting}
        return self._seen(acting), rewards, out, dict.fromkeys(acting, cut), {agent: {} for agent in acting}

    def _seen(self, agents):
        seen = {}
        for agent in agents:
            x, y = np.float32(self._places[agent])
            seen[agent] = np.array([x, y] if agent.startswith("walker") else [x, y, x - y], np.float32)
        return seen

    def close(self):
        pass


SECTIONS = {
    "run": {"name": "toy", "seed": 2, "total_frames": 400, "device": "cpu"},
    "env": {"use": "pettingzoo", "id": f"{__name__}:Mixed", "num_envs": 6},
    "model": {
        "walkers": {"use": "mlp", "hidden": [8], "agents": ["walker_*"]},
        "flyers": {"use": "mlp", "hidden": [12], "agents": ["flyer_*"]},
    },
    "loss": {"use": "ppo", "walkers": {"target_kl": 0.003}},
    "estimator": {"use": "gae"},
    "optimizer": [{"use": "adam", "lr": 1e-2}, {"use": "adam", "lr": 3e-2, "policy": "flyers", "every": 2}],
    "collector": {"frames_per_batch": 96},
    "buffer": {"minibatch_size": 16, "epochs": 3, "flyers": {"minibatch_size": 8, "epochs": 2}},
    "learner": {"max_grad_norm": 0.5},
    "evaluator": {"use": "episodes", "episodes": 6, "every": 200},
}
