"""A deterministic vector env whose episodes, ends and returns are known beforehand, and a linear model for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import gymnasium
import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from rlcore.errors import ConfigError, EnvError
from rlcore.types import EnvSpec, InfoListener, Step
from rlcore.types.context import Context

if TYPE_CHECKING:
    from rlcore.types import Array

End = Literal["terminated", "truncated"]

_ACTION_SPACES: Final[dict[str, gymnasium.Space[Any]]] = {
    "unbounded": gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32),
    "bounded": gymnasium.spaces.Box(np.float32(-0.5), np.float32(2.0), (2,), np.float32),
    "discrete": gymnasium.spaces.Discrete(3),
    "numbered": gymnasium.spaces.Discrete(3, start=-1),
    "choices": gymnasium.spaces.MultiDiscrete([3, 2], start=[0, 1]),
    "bits": gymnasium.spaces.MultiBinary(2),
}


class ToyEnv:
    """Episode `k` of env `i` has length `episode_lengths[(i + k) % n]` and ends as `ends[(i + k) % n]` says.

    The reward of step `t` (from 1) is `t`, so an episode of length `n` returns `n (n + 1) / 2`; with `reward = "aim"`
    it is `1 - (action - 0.5)^2`, which can be learned. An observation is `[t / 10, start, position]`: `start` is random
    in each episode, and `position` moves by the actions. All arrays are reused by the next step, as an env may do.
    A picture is 32 x 48 and black but for a blue bar from the left, two pixels wide for each step of the episode.
    """

    render_fps = 10.0

    class Config(BaseModel, extra="forbid"):
        """The episodes."""

        num_envs: int = Field(2, ge=1, description="envs that step together")
        episode_lengths: list[int] = Field([3, 5, 4], min_length=1, description="lengths of the episodes, in turn")
        ends: list[End] = Field(["terminated", "truncated"], min_length=1, description="how they end, in turn")
        reset_mode: Literal["same_step", "next_step"] = Field("same_step", description="when an ended env is reset")
        frame_skip: int = Field(1, ge=1, description="frames that a step counts")
        actions: Literal["unbounded", "bounded", "discrete", "numbered", "choices", "bits"] = Field(
            "unbounded", description="the action space"
        )
        reward: Literal["count", "aim"] = Field("count", description="the number of the step, or nearness to 0.5")
        render_mode: Literal["rgb_array"] | None = Field(None, description="rgb_array: can be rendered")

    def __init__(self, config: Config, context: Context | None = None) -> None:
        self._config = config
        space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.spec = EnvSpec(
            id="toy",
            observation_space=space,
            action_space=_ACTION_SPACES[config.actions],
            num_envs=config.num_envs,
            frame_skip=config.frame_skip,
            reset_mode=config.reset_mode,
            max_episode_steps=max(config.episode_lengths),
        )
        count = config.num_envs
        # the lengths and ends are those of all envs of the run
        self._first = context.first_env if context is not None else 0
        self._generators = [np.random.default_rng(index) for index in range(count)]
        self._episode = np.zeros(count, dtype=np.int64)
        self._elapsed = np.zeros(count, dtype=np.int64)
        self._lasted = np.zeros(count, dtype=np.int64)
        self._start = np.zeros(count)
        self._position = np.zeros(count)
        self._over = np.zeros(count, dtype=bool)
        self._observation = np.zeros((count, 3), dtype=np.float32)
        self._final = np.zeros((count, 3), dtype=np.float32)
        self._reward = np.zeros(count)
        self._terminated = np.zeros(count, dtype=bool)
        self._truncated = np.zeros(count, dtype=bool)
        self.closed = False
        self._listener: InfoListener | None = None

    def length(self, index: int, episode: int) -> int:
        """Return the length of an episode of env `index`."""
        lengths = self._config.episode_lengths
        return lengths[(self._first + index + episode) % len(lengths)]

    def end(self, index: int, episode: int) -> End:
        """Return how an episode of env `index` ends."""
        return self._config.ends[(self._first + index + episode) % len(self._config.ends)]

    def reset(self, seed: int | None = None) -> Array:
        """Reset every env, from its episode 0."""
        self._terminated[:] = self._truncated[:] = False
        for index in range(self.spec.num_envs):
            if seed is not None:
                self._generators[index] = np.random.default_rng(seed + index)
            self._episode[index] = 0
            self._begin(index)
        return self._observation

    def step(self, action: Array) -> Step:
        """Step every env."""
        infos: dict[int, dict[str, Any]] = {}
        finals: dict[int, Array] = {}
        self._reward[:] = 0
        self._terminated[:] = self._truncated[:] = False
        for index in range(self.spec.num_envs):
            if self._over[index]:
                self._episode[index] += 1
                self._begin(index)
                continue
            self._advance(index, float(np.ravel(action[index])[0]))
            if self._over[index]:
                infos[index] = {"episode": int(self._episode[index])}
                if self.spec.reset_mode == "same_step":
                    finals[index] = self._final[index]
                    self._final[index] = self._observation[index]
                    self._lasted[index] = self._elapsed[index]
                    self._episode[index] += 1
                    self._begin(index)
        return Step(self._observation, self._reward, self._terminated, self._truncated, finals, infos)

    def tell_infos(self, listener: InfoListener) -> None:
        """Hand over the infos of every reset and step: where the episode began, and of a step how far it is besides."""
        self._listener = listener

    def render(self, indices: Sequence[int] | None = None) -> Array:
        """Return pictures of these envs, or of all, uint8 `[picture, 32, 48, 3]`; see `Env`."""
        if self._config.render_mode is None:
            raise EnvError("env 'toy' was made without render_mode = 'rgb_array'; it cannot be rendered")
        over = self._terminated | self._truncated
        ended = np.where(over & (self.spec.reset_mode == "same_step"), self._lasted, self._elapsed)
        elapsed = ended if indices is None else ended[list(indices)]
        pictures = np.zeros((len(elapsed), 32, 48, 3), dtype=np.uint8)
        for picture, steps in zip(pictures, elapsed, strict=True):
            picture[:, : 2 * steps, 2] = 255
        return pictures

    def close(self) -> None:
        """Note that the env was closed."""
        self.closed = True

    def state_dict(self) -> dict[str, Any]:
        """Return where every episode is."""
        return {
            "generators": [generator.bit_generator.state for generator in self._generators],
            "arrays": [np.array(array) for array in self._arrays()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put every episode where it was."""
        for generator, saved in zip(self._generators, state["generators"], strict=True):
            generator.bit_generator.state = saved
        for array, saved in zip(self._arrays(), state["arrays"], strict=True):
            array[:] = saved

    def _arrays(self) -> list[Array]:
        return [self._episode, self._elapsed, self._start, self._position, self._over, self._observation]

    def _begin(self, index: int) -> None:
        self._elapsed[index] = self._position[index] = 0
        self._over[index] = False
        self._start[index] = self._generators[index].uniform(-1, 1)
        self._observe(index)
        if self._listener is not None:
            self._listener(index, {"began": {"at": float(self._start[index])}}, True)

    def _advance(self, index: int, action: float) -> None:
        self._elapsed[index] += 1
        self._position[index] = 0.9 * self._position[index] + 0.1 * action
        aim = 1 - (action - 0.5) ** 2
        self._reward[index] = aim if self._config.reward == "aim" else self._elapsed[index]
        episode = int(self._episode[index])
        if self._elapsed[index] >= self.length(index, episode):
            self._over[index] = True
            flags = self._terminated if self.end(index, episode) == "terminated" else self._truncated
            flags[index] = True
        self._observe(index)
        if self._listener is not None:
            began, position = {"at": float(self._start[index])}, float(self._position[index])
            infos = {"began": began, "elapsed": int(self._elapsed[index]), "position": position}
            self._listener(index, {**infos, "episode": episode}, False)

    def _observe(self, index: int) -> None:
        self._observation[index] = (self._elapsed[index] / 10, self._start[index], self._position[index])


class ToyDistribution:
    """Categorical for discrete spaces; for boxes a normal distribution of scale 0.5, clipped to the bounds."""

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        self._discrete = isinstance(space, gymnasium.spaces.Discrete)
        if isinstance(space, gymnasium.spaces.Discrete):
            self.num_parameters = int(space.n)
        elif isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1 and space.dtype == np.float32:
            self.num_parameters = space.shape[0]
            self._low, self._high = torch.as_tensor(space.low), torch.as_tensor(space.high)
        else:
            raise ConfigError(f"[model] toy has no distribution for the action space {space}")

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Sample uniform noise, or standard normal noise."""
        draw = torch.rand if self._discrete else torch.randn
        return draw((*shape, self.num_parameters), generator=generator, device=generator.device)

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions."""
        if self._discrete:
            return (parameters - (-noise.clamp(min=1e-9).log()).log()).argmax(-1)
        return self._clip(parameters + 0.5 * noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the likeliest actions."""
        return parameters.argmax(-1) if self._discrete else self._clip(parameters)

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        if self._discrete:
            return parameters.log_softmax(-1).gather(-1, action.unsqueeze(-1))
        constant = math.log(0.5) + 0.5 * math.log(2 * math.pi)
        return (-2 * (action - parameters).square() - constant).sum(-1, keepdim=True)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        if self._discrete:
            return -(parameters.softmax(-1) * parameters.log_softmax(-1)).sum(-1, keepdim=True)
        each = 0.5 + math.log(0.5) + 0.5 * math.log(2 * math.pi)
        return (0 * parameters + each).sum(-1, keepdim=True)

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return both."""
        return self.log_prob(parameters, action), self.entropy(parameters)

    def _clip(self, action: Tensor) -> Tensor:
        return torch.clamp(action, self._low.to(action.device), self._high.to(action.device))


class ToyLinear(nn.Linear):
    """A linear map of numbers of any kind."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return floats."""
        return super().forward(inputs.to(self.weight.dtype))


class ToyActor(nn.Module):
    """A linear map from observations to the parameters of a distribution."""

    def __init__(self, inputs: int, distribution: ToyDistribution) -> None:
        super().__init__()
        self.linear = ToyLinear(inputs, distribution.num_parameters)
        self.distribution = distribution

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters."""
        return self.linear(observation)  # type: ignore[no-any-return]


class ToyPolicy:
    """Samples from the actor."""

    writes = ("sample_log_prob",)

    def __init__(self, actor: ToyActor) -> None:
        self._actor = actor

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch."""
        return self._actor.distribution.noise((steps, num_envs), generator)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return sampled actions and the parameters."""
        parameters = self._actor(observation)
        return self._actor.distribution.sample(parameters, noise), parameters

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return `sample_log_prob`."""
        return {"sample_log_prob": self._actor.distribution.log_prob(parameters, action)}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the likeliest actions."""
        return self._actor.distribution.mode(self._actor(observation))

    def refresh(self) -> None:
        """Do nothing: the policy reads the actor's weights at each step."""


class ToyModel(nn.Module):
    """A linear `actor` and a linear `critic`, for observations of one dimension."""

    class Config(BaseModel, extra="forbid"):
        """The size of the weights."""

        scale: float = Field(0.1, gt=0, description="standard deviation of the initial weights")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        shape = spec.observation_space.shape
        if shape is None or len(shape) != 1:
            raise ConfigError(f"[model] toy takes observations of one dimension, not {spec.observation_space}")
        self.actor = ToyActor(shape[0], ToyDistribution(spec.action_space))
        self.critic = ToyLinear(shape[0], 1)
        self.policy = ToyPolicy(self.actor)
        generator = torch.Generator().manual_seed(context.seed("weights"))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.normal_(0, config.scale, generator=generator)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the parts."""
        return ("actor", "critic")
