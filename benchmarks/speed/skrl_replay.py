"""skrl's SAC and TD3 on an env of tensors of rlcore, a step of all envs at a time."""

from __future__ import annotations

import logging
from typing import Any

import torch
from skrl.agents.torch.sac import SAC
from skrl.agents.torch.td3 import TD3
from skrl.envs.wrappers.torch import Wrapper
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.resources.noises.torch import GaussianNoise
from skrl.trainers.torch import StepTrainer
from torch import Tensor, nn

logging.getLogger("skrl").setLevel(logging.ERROR)


class Wrapped(Wrapper):  # type: ignore[misc]
    """An env of tensors as skrl steps it; ended envs begin their next episode in the same step, as Isaac Lab's do.

    Attributes:
        returns: mean over the episodes that ended together, oldest first.
    """

    def __init__(self, env: Any) -> None:
        self._tensors = env
        self._device = env.device
        self._running = torch.zeros(env.num_envs, device=env.device)
        self._steps = 0
        self.returns: list[Tensor] = []
        super().__init__(env)

    @property
    def num_envs(self) -> int:
        """How many."""
        return int(self._tensors.num_envs)

    @property
    def device(self) -> torch.device:
        """Of all tensors."""
        return self._device

    @property
    def state_space(self) -> None:
        """None: critics see what actors see."""
        return

    @property
    def observation_space(self) -> Any:
        """Of one env."""
        return self._tensors.spec.observation_space

    @property
    def action_space(self) -> Any:
        """Of one env."""
        return self._tensors.spec.action_space

    def reset(self) -> tuple[Tensor, dict[str, Any]]:
        """Begin everywhere."""
        return self._tensors.reset_tensors(1), {}

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Any]:
        """Step every env."""
        step = self._tensors.step_tensors(actions)
        self._running += step.reward
        self._steps += 1
        if self._steps % self._tensors.spec.max_episode_steps == 0:  # the episodes of pendulums end together
            self.returns.append(self._running.mean())
            self._running = torch.zeros_like(self._running)
        columns = (step.reward, step.terminated, step.truncated)
        return step.observation, *(column.unsqueeze(-1) for column in columns), {}  # type: ignore[return-value]

    def state(self) -> None:
        """Return None."""

    def render(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def layers(inputs: int, hidden: list[int], outputs: int) -> nn.Sequential:
    """Return an MLP with ReLU."""
    sizes = [inputs, *hidden]
    body = [part for one, two in zip(sizes, hidden, strict=False) for part in (nn.Linear(one, two), nn.ReLU())]
    return nn.Sequential(*body, nn.Linear(sizes[-1], outputs))


class GaussianActor(GaussianMixin, Model):  # type: ignore[misc]
    """The actor of skrl's example of Pendulum: squashed means, and one deviation."""

    def __init__(self, env: Wrapped, hidden: list[int]) -> None:
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device=env.device)
        GaussianMixin.__init__(self, clip_actions=True)
        self.net = layers(self.num_observations, hidden, self.num_actions)
        self.log_std_parameter = nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs: dict[str, Tensor], role: str) -> tuple[Tensor, dict[str, Tensor]]:
        """Return means and log standard deviations."""
        return 2 * torch.tanh(self.net(inputs["observations"])), {"log_std": self.log_std_parameter}


class Actor(DeterministicMixin, Model):  # type: ignore[misc]
    """A deterministic actor."""

    def __init__(self, env: Wrapped, hidden: list[int]) -> None:
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device=env.device)
        DeterministicMixin.__init__(self)
        self.net = layers(self.num_observations, hidden, self.num_actions)

    def compute(self, inputs: dict[str, Tensor], role: str) -> tuple[Tensor, dict[str, Tensor]]:
        """Return actions."""
        return 2 * torch.tanh(self.net(inputs["observations"])), {}


class Critic(DeterministicMixin, Model):  # type: ignore[misc]
    """One critic."""

    def __init__(self, env: Wrapped, hidden: list[int]) -> None:
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device=env.device)
        DeterministicMixin.__init__(self)
        self.net = layers(self.num_observations + self.num_actions, hidden, 1)

    def compute(self, inputs: dict[str, Tensor], role: str) -> tuple[Tensor, dict[str, Tensor]]:
        """Return action values."""
        return self.net(torch.cat([inputs["observations"], inputs["taken_actions"]], -1)), {}


def trainer_of(algorithm: str, tensors: Any, sizes: Any) -> tuple[StepTrainer, Wrapped]:
    """Return a trainer that writes nothing, and its env.

    Args:
        algorithm: `sac` or `td3`.
        tensors: the env.
        sizes: `device_replay.Sizes`.
    """
    env, device = Wrapped(tensors), tensors.device
    names = ["critic_1", "critic_2", "target_critic_1", "target_critic_2"]
    models: dict[str, Model] = {name: Critic(env, sizes.hidden) for name in names}
    begin = sizes.warmup // sizes.envs
    cfg: dict[str, Any] = {
        "gradient_steps": sizes.updates,
        "batch_size": sizes.minibatch,
        "learning_rate": sizes.learning_rate,
        "random_timesteps": begin,
        "learning_starts": begin,
        "experiment": {"write_interval": 0, "checkpoint_interval": 0},
    }
    if algorithm == "sac":
        agent_kind, models["policy"] = SAC, GaussianActor(env, sizes.hidden)
        cfg["initial_entropy_value"] = 1.0
    else:
        agent_kind, models["policy"] = TD3, Actor(env, sizes.hidden)
        models["target_policy"] = Actor(env, sizes.hidden)
        # in the units of the actions, which go from -2 to 2
        cfg |= {
            "exploration_noise": GaussianNoise,
            "exploration_noise_kwargs": {"mean": 0.0, "std": 0.2, "device": device},
            "smooth_regularization_noise": GaussianNoise,
            "smooth_regularization_noise_kwargs": {"mean": 0.0, "std": 0.4, "device": device},
            "smooth_regularization_clip": 1.0,
        }
    # with replacement, as rlcore samples; without it a permutation of all transitions is drawn for each update
    memory = RandomMemory(
        memory_size=sizes.capacity // sizes.envs, num_envs=sizes.envs, device=device, replacement=True
    )
    agent = agent_kind(
        models=models,
        memory=memory,
        observation_space=env.observation_space,
        action_space=env.action_space,
        device=device,
        cfg=cfg,
    )
    trainer = StepTrainer(
        env=env,
        agents=agent,
        cfg={"timesteps": 10**9, "headless": True, "disable_progressbar": True, "close_environment_at_exit": False},
    )
    return trainer, env
