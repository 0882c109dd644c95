"""Envs with the interface of rsl_rl's `VecEnv`, in torch."""

import math

import torch
from tensordict import TensorDict

try:
    from rsl_rl.env import VecEnv
except ImportError:  # the interface is what counts
    VecEnv = object


class Hover(VecEnv):
    """A drone that is to stay at the middle of a square, in a wind that the critic alone sees.

    An episode ends outside of the square, and is cut off after `limit` steps.

    Args:
        num_envs: how many.
        device: of all tensors.
        limit: steps.
        shares: whether observations are views of one buffer, which the next step writes over; actions too.
        size: half of the side of the square.
    """

    def __init__(self, num_envs, device="cpu", limit=50, shares=True, size=2.0):
        self.num_envs = num_envs
        self.num_actions = 2
        self.max_episode_length = limit
        self.device = torch.device(device)
        self.cfg = {"limit": limit}
        self._size = size
        self._shares = shares
        self._generator = torch.Generator(self.device)
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long, device=self.device)
        self._state = torch.zeros(num_envs, 6, device=self.device)  # position, velocity, wind
        self._seen = torch.zeros(num_envs, 10, device=self.device)
        self.seed(0)
        self.reset()

    def seed(self, seed=-1):
        self._generator.manual_seed(seed)
        return seed

    def reset(self):
        self._state = self._begun()
        self.episode_length_buf = torch.zeros_like(self.episode_length_buf)
        return self.get_observations(), {}

    def get_observations(self):
        self._seen[:, :4] = self._state[:, :4]
        self._seen[:, 4:] = self._state
        seen = self._seen if self._shares else self._seen.clone()
        return TensorDict({"policy": seen[:, :4], "critic": seen[:, 4:]}, batch_size=self.num_envs)

    def step(self, actions):
        # some simulators write into what they were given
        actions = actions.clamp_(-1, 1) if self._shares else actions.clamp(-1, 1)
        position, velocity, wind = self._state.split(2, 1)
        velocity = 0.9 * velocity + 0.1 * actions + 0.02 * wind
        position = position + 0.1 * velocity
        self.episode_length_buf = self.episode_length_buf + 1
        out = position.abs().amax(1) > self._size
        time_outs = (self.episode_length_buf >= self.max_episode_length) & ~out
        dones = out | time_outs
        reward = torch.exp(-position.square().sum(1)) - 0.01 * actions.square().sum(1) - 1.0 * out
        self._state = torch.where(dones[:, None], self._begun(), torch.cat([position, velocity, wind], 1))
        self.episode_length_buf = torch.where(dones, 0, self.episode_length_buf)
        log = {"/distance": position.norm(dim=1), "out": out.float().mean(), "limit": float(self.max_episode_length)}
        return self.get_observations(), reward, dones.long(), {"time_outs": time_outs, "log": log}

    def state_dict(self):
        return {
            "state": self._state,
            "length": self.episode_length_buf,
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state):
        self._state = state["state"].to(self.device, copy=True)
        self.episode_length_buf = state["length"].to(self.device, copy=True)
        self._generator.set_state(state["generator"])

    def _begun(self):
        drawn = torch.rand(self.num_envs, 6, generator=self._generator, device=self.device) * 2 - 1
        return torch.cat([drawn[:, :2] * 1.5, drawn[:, 2:4] * 0.1, drawn[:, 4:]], 1)


class OneGroup(Hover):
    """What the actor sees is all there is."""

    def get_observations(self):
        return super().get_observations().select("policy")


class Simulator(Hover):
    """It has no state that could be saved, and its episodes cannot begin again, as the interface asks for neither."""

    reset = state_dict = load_state_dict = seed = None

    def __init__(self, **arguments):
        self.seed = lambda seed: self._generator.manual_seed(seed)
        self.reset = lambda: Hover.reset(self)
        super().__init__(**arguments)
        del self.seed, self.reset

    def __getattribute__(self, name):
        if name in ("state_dict", "load_state_dict"):
            raise AttributeError(name)
        return super().__getattribute__(name)


def broken(num_envs, device, what, value):
    """A `Hover` of which one thing is another than the interface says."""
    env = Hover(num_envs, device)
    if what in ("num_envs", "device", "get_observations"):
        setattr(env, what, (lambda: value) if what == "get_observations" else value)
        return env
    step = env.step

    def another(actions):
        observations, rewards, dones, extras = step(actions)
        given = {"observations": observations, "rewards": rewards, "dones": dones, "extras": extras}
        given[what] = _another(given[what], value)
        return tuple(given.values())

    env.step = another
    return env


def _another(value, how):
    if how == "column":
        return value[:, None]
    if how == "integers":
        return value.long()
    if how == "nan":
        return torch.full_like(value, math.nan)
    if how == "missing":
        return value.select("policy")
    if how == "nan_for_critic":
        return TensorDict({**value, "critic": value["critic"] * math.nan}, batch_size=value.batch_size)
    if how == "list":
        return value.tolist()
    if how == "none":
        return None
    if how == "drop":
        return {}
    return {**value, "time_outs": value["time_outs"][:1]}
