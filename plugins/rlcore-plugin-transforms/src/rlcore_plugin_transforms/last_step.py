"""The last action and the last reward, as parts of the observation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np
import torch
from pydantic import BaseModel, Field

from rlcore.envs import Packed, PassThrough
from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_transforms.flat_leaf import FlatLeaf, float_dtype

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

    from rlcore.types import Array, BoolArray

_OBSERVATION: Final = "observation"
_ACTION: Final = "last_action"
_REWARD: Final = "last_reward"


class LastStep(PassThrough):
    """Appends the action and the reward that led to each observation; zeros where an episode begins.

    A policy with a memory can tell from them what its actions did. Actions are those of the policy; numbered ones
    become one-hot vectors. Rewards are those of the env, before any transform. Observations that are vectors become
    longer ones, float32 or, where that would round them, float64; those of other shapes, and dicts, get the leaves
    `last_action` and `last_reward`.

    Source: Kapturowski et al. 2019, "Recurrent Experience Replay in Distributed Reinforcement Learning", section 2.3.
    """

    takes_leaves = True

    class Config(BaseModel, extra="forbid"):
        """What is appended."""

        action: bool = Field(True, description="whether the last action is")
        reward: bool = Field(True, description="whether the last reward is")

    def __init__(self, config: Config, context: Context) -> None:
        self._name = context.name
        if not (config.action or config.reward):
            raise ConfigError(
                f"[[transform]] {self._name!r} appends neither the last action nor the last reward; leave it out"
            )
        self._choice = FlatLeaf(_ACTION, context.env_spec.action_space, 0) if config.action else None
        self._has_reward = config.reward
        self._before: gymnasium.Space[Any] | None = None
        self._after: Packed | None = None  # where observations are dicts
        # of the step that led to the observation to come; replaced, never changed in place
        self._action: Array | None = None  # [env, number], float32
        self._reward: Array | None = None  # [env, 1], float32
        self._tensors: dict[str, Tensor] = {}  # the same, of envs of tensors, by the name of the leaf

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the space of longer vectors, or of dicts with further leaves.

        Raises:
            ConfigError: observations are dicts that have such a leaf already, or no arrays of numbers.
        """
        self._before, self._after = space, None
        if isinstance(space, Packed):
            taken = sorted({_ACTION, _REWARD} & set(space.leaves))
            if taken:
                raise ConfigError(f"[[transform]] {self._name!r}: the observations have a leaf {taken[0]!r} already")
            self._after = Packed({**space.leaves, **self._bounds()}, space.choices)
            return self._after
        if not isinstance(space, gymnasium.spaces.Box):
            raise ConfigError(
                f"[[transform]] {self._name!r} needs observations in a Box or a dict, not {space}; the transform "
                "'flatten' before it makes one of them"
            )
        if len(space.shape) != 1:
            self._after = Packed({_OBSERVATION: space, **self._bounds()})
            return self._after
        boxes, dtype = [space, *self._bounds().values()], float_dtype(space.dtype)
        low, high = (np.concatenate([getattr(box, end) for box in boxes], dtype=dtype) for end in ("low", "high"))
        return gymnasium.spaces.Box(low, high, dtype=dtype.type)

    def action(self, action: Array) -> Array:
        """Take the actions of the policy in, `[env, *shape]`, and return them as they are."""
        if self._choice is not None:
            flat = np.zeros((len(action), self._choice.size), dtype=np.float32)
            self._choice.write(flat, action)
            self._action = flat
        return action.copy()

    def read_reward(self, reward: Array) -> None:
        """Take the rewards of a step in, `[env]`."""
        if self._has_reward:
            self._reward = np.array(reward, dtype=np.float32)[:, None]

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the observations with what led to them."""
        known = {
            name: np.where(first[:, None], np.float32(0), values)
            for name, values in self._known(len(observation)).items()
        }
        return self._joined(observation, known)

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the last observation of an episode with what led to it."""
        known = {name: values[[env_index]] for name, values in self._known(env_index + 1).items()}
        result: Array = self._joined(observation[None], known)[0]
        return result

    def take_tensors(self, action: Tensor, reward: Tensor) -> None:
        """Take the actions of the policy and the rewards of a step in, tensors on any device."""
        choice = {} if self._choice is None else {_ACTION: self._choice.tensor(action)}
        self._tensors = {**choice, **({_REWARD: reward.float().unsqueeze(1)} if self._has_reward else {})}

    def step_tensors(self, observation: Tensor, first: Tensor) -> Tensor:
        """Return what `step` does, of tensors on any device."""
        led = self._led(observation)
        return self._joined_tensors(
            observation, {name: torch.where(first.unsqueeze(1), 0.0, values) for name, values in led.items()}
        )

    def final_tensors(self, observation: Tensor) -> Tensor:
        """Return what `final` does, of tensors `[env, *shape]`."""
        return self._joined_tensors(observation, self._led(observation))

    def frozen(self) -> Self:
        """Return a copy that has seen no step yet, for envs of its own."""
        copied = super().frozen()
        copied.forget_episodes()
        return copied

    def forget_episodes(self) -> None:
        """Forget the last step. Nothing of it has to be saved: it is in the observation that the policy sees next."""
        self._action = self._reward = None
        self._tensors = {}

    def _bounds(self) -> dict[str, gymnasium.spaces.Box]:
        """Return the space of each further leaf, with the zeros of a beginning in it."""
        bounds: dict[str, gymnasium.spaces.Box] = {}
        if self._choice is not None:
            with np.errstate(over="ignore"):  # a bound beyond the range of float32 is none
                low = np.minimum(self._choice.low, 0).astype(np.float32)
                high = np.maximum(self._choice.high, 0).astype(np.float32)
            bounds[_ACTION] = gymnasium.spaces.Box(low, high, dtype=np.float32)
        if self._has_reward:
            bounds[_REWARD] = gymnasium.spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)
        return bounds

    def _known(self, least: int) -> dict[str, Array]:
        """Return what is known of the last step by the name of its leaf, `[env, number]`, of at least so many envs."""
        known: dict[str, Array] = {}
        if self._choice is not None:
            known[_ACTION] = _or_zeros(self._action, least, self._choice.size)
        if self._has_reward:
            known[_REWARD] = _or_zeros(self._reward, least, 1)
        return known

    def _joined(self, observation: Array, known: dict[str, Array]) -> Array:
        if self._after is None:
            return np.concatenate([observation, *known.values()], axis=-1, dtype=float_dtype(observation.dtype))
        before = self._before
        arrays = before.arrays(observation) if isinstance(before, Packed) else {_OBSERVATION: observation}
        return self._after.pack({**arrays, **known})

    def _led(self, observation: Tensor) -> dict[str, Tensor]:
        """Return what `_known` does as tensors beside the observations; zeros where no step came yet."""
        sizes = {name: box.shape[0] for name, box in self._bounds().items()}
        return self._tensors or {
            name: torch.zeros(len(observation), size, device=observation.device) for name, size in sizes.items()
        }

    def _joined_tensors(self, observation: Tensor, led: dict[str, Tensor]) -> Tensor:
        if self._after is None:
            dtype = torch.promote_types(observation.dtype, torch.float32)
            return torch.cat([observation.to(dtype), *led.values()], -1)
        before = self._before
        leaves = before.tensors(observation) if isinstance(before, Packed) else {_OBSERVATION: observation}
        return self._after.joined({**leaves, **led})


def _or_zeros(values: Array | None, least: int, size: int) -> Array:
    """Return what was taken in; zeros where no step came yet, or none of so many envs."""
    if values is None or len(values) < least:
        return np.zeros((least, size), dtype=np.float32)
    return values
