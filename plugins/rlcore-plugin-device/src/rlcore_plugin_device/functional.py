"""An env as functions of its state, in the five methods of Gymnasium's functional envs; the rest is done here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.errors import ConfigError, EnvError
from rlcore.types import EnvSpec
from rlcore_plugin_device.function_checks import check_functions
from rlcore_plugin_device.random import Random, keys_of
from rlcore_plugin_device.tensor_env import TensorEnv, TensorStep

if TYPE_CHECKING:
    import gymnasium

    from rlcore import Context
    from rlcore.types import Array

# what an env is in one moment, `[env, ...]` by name
State: TypeAlias = Mapping[str, Tensor]


class Moment(NamedTuple):
    """Everything that the next steps of the envs depend on.

    Attributes:
        state: of every env.
        keys: what their random numbers follow from, `[env, 2]`.
        step: steps of each env over all of its episodes, `[env]`.
        length: steps of the running episodes, `[env]`.
    """

    state: State
    keys: Tensor
    step: Tensor
    length: Tensor


class FunctionalEnv(TensorEnv):
    """A vector env, written as functions of tensors whose first dimension is the env.

    The methods change nothing, the tensors that they get neither: they return new ones. Episodes that end, their next
    ones, time limits, seeds and checkpoints are taken care of.

    Attributes:
        observation_space: of one env.
        action_space: of one env.
        max_episode_steps: steps after which an episode is truncated; None for no limit.
        num_envs: how many envs step together.
        moment: where the envs stand; None before the first reset.

    Raises:
        ConfigError: a space is missing.
    """

    class Config(BaseModel, extra="forbid"):
        """How many envs."""

        num_envs: int = Field(1, ge=1, description="envs that step together")

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    max_episode_steps: int | None = None

    def __init__(self, config: Any, context: Context) -> None:
        missing = [name for name in ("observation_space", "action_space") if not hasattr(self, name)]
        if missing:
            raise ConfigError(f"[env] {type(self).__name__} has no {' and no '.join(missing)}; set it in the class")
        self.num_envs: int = config.num_envs
        self.device = context.device
        self.spec = EnvSpec(
            id=context.name or type(self).__name__,
            observation_space=self.observation_space,
            action_space=self.action_space,
            num_envs=self.num_envs,
            max_episode_steps=self.max_episode_steps,
        )
        self.moment: Moment | None = None
        self._is_rendered = getattr(config, "render_mode", None) is not None
        self._reached: State | None = None

    @abstractmethod
    def initial(self, random: Random) -> State:
        """Return the state in which an episode begins, for every env; called in each step, as some may begin one.

        Args:
            random: gives numbers; the only source of what is random.
        """

    @abstractmethod
    def transition(self, state: State, action: Tensor, random: Random) -> State:
        """Return the state after a step, with the same names, shapes and dtypes.

        Args:
            state: before it.
            action: `[env, *shape]`, dtype and values those of the action space.
            random: gives numbers, others than those of `initial`.
        """

    @abstractmethod
    def observation(self, state: State) -> Tensor:
        """Return what is observed of a state, `[env, *shape]`."""

    @abstractmethod
    def reward(self, state: State, action: Tensor, next_state: State) -> Tensor:
        """Return the rewards of a step, `[env]`."""

    @abstractmethod
    def terminal(self, state: State) -> Tensor:
        """Return whether an episode that is in this state after a step is at an end of its own, `[env]`, bool."""

    def pictures(self, state: State) -> Array:
        """Return what states look like, uint8 `[env, height, width, 3]`; for envs with the key `render_mode`.

        Raises:
            EnvError: there are no pictures of these envs.
        """
        raise EnvError(f"env {self.spec.id!r} cannot be rendered: {type(self).__name__} has no method pictures")

    def reset_tensors(self, seed: int | None = None) -> Tensor:
        """Begin an episode in every env.

        Raises:
            EnvError: states, observations, rewards or ends have another form than they should, or a method changes
                what it was given, or depends on more than that.
        """
        last, zeros = self.moment, torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        if last is None or seed is not None:
            keys, step = keys_of(seed or 0, self.num_envs, self.device), zeros
        else:
            keys, step = last.keys, last.step + 1
        state = {**self.initial(Random(keys, step))}
        if last is None:
            check_functions(self)
        self.moment, self._reached = Moment(state, keys, step, zeros), None
        return self.observation(state)

    def step_tensors(self, action: Tensor) -> TensorStep:
        """Step every env, and begin the next episode where one ended."""
        assert self.moment is not None, "reset comes first"
        self.moment, step = self.stepped(self.moment, action)
        return step

    def stepped(self, moment: Moment, action: Tensor) -> tuple[Moment, TensorStep]:
        """Return the moment after a step with actions `[env, *shape]`, and the step; it changes nothing."""
        step, length = moment.step + 1, moment.length + 1
        random = Random(moment.keys, step)
        following = self.transition(moment.state, action, random)
        if self._is_rendered:
            self._reached = following  # the picture after a step is that of an end, though the next episode began
        reward = self.reward(moment.state, action, following)
        terminated = self.terminal(following)
        if self.max_episode_steps is None:
            truncated = torch.zeros_like(terminated)
        else:
            truncated = (length >= self.max_episode_steps) & ~terminated
        ended = terminated | truncated
        begun = self.initial(random)
        final = self.observation(following)
        state = {name: _where(ended, begun[name], value) for name, value in following.items()}
        observation = _where(ended, self.observation(begun), final)
        after = Moment(state, moment.keys, step, length.masked_fill(ended, 0))
        return after, TensorStep(observation, reward, terminated, truncated, final)

    def render(self, indices: Sequence[int] | None = None) -> Array:
        """Return pictures of envs as they stand, those of the last step's ends among them; see `Env` and `pictures`.

        Raises:
            EnvError: the env was made without `render_mode`, or has no pictures.
        """
        if not self._is_rendered:
            raise EnvError(f"env {self.spec.id!r} was made without render_mode = 'rgb_array'; it cannot be rendered")
        assert self.moment is not None, "reset comes first"
        state = self.moment.state if self._reached is None else self._reached
        if indices is not None:
            state = {name: value[list(indices)] for name, value in state.items()}
        return self.pictures(state)

    def most_truncations(self, steps: int) -> int:
        """Return how often an env comes to its limit within so many steps."""
        return 0 if self.max_episode_steps is None else -(-steps // self.max_episode_steps)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every env, and where its random numbers stand."""
        return {} if self.moment is None else self.moment._asdict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        variables = {name: value.to(self.device) for name, value in state["state"].items()}
        self.moment = Moment(variables, *(state[name].to(self.device) for name in ("keys", "step", "length")))
        self._reached = None


def _where(ended: Tensor, begun: Tensor, value: Tensor) -> Tensor:
    """Return the values of new episodes where one ended."""
    return torch.where(ended.reshape(-1, *[1] * (value.dim() - 1)), begun, value)
