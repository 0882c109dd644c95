"""An env as functions of its state, in the five methods of Gymnasium's functional envs; the rest is done here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.errors import ConfigError, EnvError
from rlcore.types import EnvSpec
from rlcore_plugin_device.random import Random, keys_of
from rlcore_plugin_device.tensor_env import TensorEnv, TensorStep, torch_dtype

if TYPE_CHECKING:
    import gymnasium

    from rlcore import Context

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

    def reset_tensors(self, seed: int | None = None) -> Tensor:
        """Begin an episode in every env.

        Raises:
            EnvError: states, observations, rewards or ends have another form than they should.
        """
        last, zeros = self.moment, torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        if last is None or seed is not None:
            keys, step = keys_of(seed or 0, self.num_envs, self.device), zeros
        else:
            keys, step = last.keys, last.step + 1
        state = {**self.initial(Random(keys, step))}
        if last is None:
            self._check(state)
        self.moment = Moment(state, keys, step, zeros)
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

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every env, and where its random numbers stand."""
        return {} if self.moment is None else self.moment._asdict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        variables = {name: value.to(self.device) for name, value in state["state"].items()}
        self.moment = Moment(variables, *(state[name].to(self.device) for name in ("keys", "step", "length")))

    def _check(self, state: State) -> None:
        """Take a step on the side, and hold the form of everything against the spaces.

        Raises:
            EnvError: says what has another form, and which.
        """
        for name, value in state.items():
            self._check_tensor("initial", value, (self.num_envs, *getattr(value, "shape", ())[1:]), None, f"[{name!r}]")
        random = Random(keys_of(0, self.num_envs, self.device), torch.zeros((), device=self.device).long())
        space = self.action_space
        shape, dtype = space.shape or (), torch_dtype(space.dtype)
        action = torch.zeros((self.num_envs, *shape), dtype=dtype, device=self.device)
        following = self.transition(state, action, random)
        if set(following) != set(state):
            raise self._error("transition", f"the names {sorted(following)}", f"those of initial: {sorted(state)}")
        for name, value in state.items():
            self._check_tensor("transition", following[name], tuple(value.shape), value.dtype, f"[{name!r}]")
        seen = self.observation_space
        observed = (self.num_envs, *(seen.shape or ()))
        self._check_tensor("observation", self.observation(state), observed, torch_dtype(seen.dtype))
        reward = self.reward(state, action, following)
        self._check_tensor("reward", reward, (self.num_envs,), None)
        if not reward.dtype.is_floating_point:
            raise self._error("reward", f"{reward.dtype}", "floats")
        self._check_tensor("terminal", self.terminal(following), (self.num_envs,), torch.bool)

    def _check_tensor(
        self, method: str, value: Any, shape: tuple[int, ...], dtype: torch.dtype | None, of: str = ""
    ) -> None:
        if not isinstance(value, Tensor):
            raise self._error(method, f"{type(value).__name__}", "a tensor", of)
        if value.device.type != self.device.type:
            raise self._error(method, f"a tensor on {value.device}", f"one on {self.device}, as self.device says", of)
        if tuple(value.shape) != shape:
            raise self._error(method, f"the shape {list(value.shape)}", f"{list(shape)}", of)
        if dtype is not None and value.dtype != dtype:
            raise self._error(method, f"{value.dtype}", f"{dtype}", of)

    def _error(self, method: str, is_: str, expected: str, of: str = "") -> EnvError:
        return EnvError(f"env {self.spec.id!r}: {type(self).__name__}.{method}{of} gives {is_}, not {expected}")


def _where(ended: Tensor, begun: Tensor, value: Tensor) -> Tensor:
    """Return the values of new episodes where one ended."""
    return torch.where(ended.reshape(-1, *[1] * (value.dim() - 1)), begun, value)
