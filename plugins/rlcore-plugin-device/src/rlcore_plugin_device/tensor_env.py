"""What a vector env of tensors is: its steps take and return tensors of one device.

Such an env is an `Env` of arrays too, so that evaluations, videos, transforms and every other collector take it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlcore.types import Env, Step

if TYPE_CHECKING:
    from rlcore.types import Array


class TensorStep(NamedTuple):
    """What a vector env of tensors returns from one step. The next call may overwrite the tensors.

    Attributes:
        observation: `[env, *shape]`, to act on next: of an env whose episode ended, the first of its next episode.
        reward: `[env]`, float.
        terminated: `[env]`, bool: the episode reached an end of its own; its value there is zero.
        truncated: `[env]`, bool: the episode was cut off; the value there is bootstrapped.
        final_observation: `[env, *shape]`, what the step led to: where an episode ended, its last observation, and
            elsewhere `observation`.
    """

    observation: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    final_observation: Tensor


class TensorEnv(Env):
    """A vector of environments whose tensors stay on one device.

    An env that is written in torch derives from `FunctionalEnv`, which is less to write. This class is for simulators
    that step by themselves.

    Where an episode ends, the next one begins in the same step, without a question to the host (`torch.where`).

    Attributes:
        spec: spaces and counts; `reset_mode` is `same_step`.
        device: of all tensors.
    """

    device: torch.device

    @abstractmethod
    def reset_tensors(self, seed: int | None = None) -> Tensor:
        """Begin an episode in every env, env `i` with `seed + i`; return the observations `[env, *shape]`.

        Args:
            seed: None to go on with what is random as it stands.
        """

    @abstractmethod
    def step_tensors(self, action: Tensor) -> TensorStep:
        """Step every env, and begin the next episode where one ended.

        Args:
            action: `[env, *shape]` on the device, dtype and values those of `spec.action_space`; not to be written to.
        """

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next steps depend on."""

    @abstractmethod
    def load_state_dict(self, state: Any) -> None:
        """Go on from what `state_dict` returned."""

    def most_truncations(self, steps: int) -> int:
        """Return how many of so many steps of an env are truncated at most; the fewer, the less an estimator does."""
        return steps

    def reset(self, seed: int | None = None) -> Array:
        """Do what `reset_tensors` does, in arrays."""
        return _array(self.reset_tensors(seed))

    def step(self, action: Array) -> Step:
        """Do what `step_tensors` does, in arrays."""
        step = self.step_tensors(torch.as_tensor(np.asarray(action), device=self.device))
        observation, reward, terminated, truncated, final = map(_array, step)
        ended = np.flatnonzero(terminated | truncated).tolist()
        finals = {index: final[index] for index in ended}
        return Step(observation, reward, terminated, truncated, finals, {index: {} for index in ended})


def _array(tensor: Tensor) -> Array:
    return tensor.cpu().numpy()


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return the dtype of torch for one of NumPy."""
    return torch.from_numpy(np.zeros(0, dtype)).dtype
