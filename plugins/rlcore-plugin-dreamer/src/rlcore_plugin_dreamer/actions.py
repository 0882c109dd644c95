"""Actions as the world model takes them, and the distributions over them: one-hot, or numbers about -1 to 1."""

from __future__ import annotations

import math
from typing import Any, Final, Protocol

import gymnasium
import numpy as np
import torch
from rlcore_plugin_mlp.spaces import SCALED
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore_plugin_dreamer.categorical import entropy, mixed, one_hot, probabilities, sample

_HALF_LOG_TWO_PI: Final = 0.5 * math.log(2 * math.pi)
_SHIFT: Final = 2.0  # of a standard deviation before the sigmoid: it begins near the largest


class Actions(Protocol):
    """A family of distributions over encoded actions `[..., inputs]`, by parameters `[..., outputs]`.

    Attributes:
        inputs: how many numbers an encoded action is.
        outputs: how many parameters there are.
        noise_size: how many random numbers an action takes.
    """

    inputs: int
    outputs: int
    noise_size: int

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Return what is random in actions, `[*shape, noise_size]`."""
        ...

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return encoded actions."""
        ...

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the likeliest encoded actions."""
        ...

    def log_prob_and_entropy(self, parameters: Tensor, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities of encoded actions, and entropies, each `[...]`."""
        ...

    def to_env(self, encoded: Tensor) -> Tensor:
        """Return actions in the action space."""
        ...

    def from_env(self, action: Tensor) -> Tensor:
        """Return encoded actions of those that an env took."""
        ...


class OneHotActions:
    """Numbered actions, as one-hot vectors.

    Args:
        count: how many.
        start: the number of the first.
        unimix: the share of the uniform distribution.
    """

    def __init__(self, count: int, start: int, unimix: float) -> None:
        self.inputs = self.outputs = count
        self.noise_size = 1
        self._start = start
        self._unimix = unimix

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Return uniform numbers `[*shape, 1]`."""
        return torch.rand(*shape, 1, generator=generator, device=generator.device)

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return one-hot vectors."""
        probs = probabilities(parameters, self._unimix)
        return one_hot(sample(probs, noise.squeeze(-1)), self.inputs).to(probs.dtype)

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the one-hot vectors of the largest logits."""
        return one_hot(parameters.argmax(-1), self.inputs).to(parameters.dtype)

    def log_prob_and_entropy(self, parameters: Tensor, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, each `[...]`."""
        log_probs = mixed(parameters, self._unimix)
        return (log_probs * encoded).sum(-1), entropy(log_probs)

    def to_env(self, encoded: Tensor) -> Tensor:
        """Return the numbers, int64 `[...]`."""
        return encoded.argmax(-1) + self._start

    def from_env(self, action: Tensor) -> Tensor:
        """Return one-hot vectors of numbers `[...]`."""
        return one_hot(action.long() - self._start, self.inputs).float()


class NormalActions:
    """Numbers whose means are within -1 and 1, and whose standard deviations have bounds; an env gets them cut.

    Args:
        space: of the env.
        deviations: the least and the largest.
        device: of the bounds.
    """

    def __init__(self, space: gymnasium.spaces.Box, deviations: tuple[float, float], device: torch.device) -> None:
        self.inputs = self.noise_size = int(space.shape[0])
        self.outputs = 2 * self.inputs
        self._least, self._largest = deviations
        self._low = torch.as_tensor(space.low, dtype=torch.float32, device=device)
        self._high = torch.as_tensor(space.high, dtype=torch.float32, device=device)
        self._middle, self._half = (self._high + self._low) / 2, (self._high - self._low) / 2

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Return standard normal numbers `[*shape, action]`."""
        return torch.randn(*shape, self.inputs, generator=generator, device=generator.device)

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return numbers, beyond 1 too."""
        mean, deviation = self._both(parameters)
        return torch.addcmul(mean, deviation, noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the means."""
        return self._both(parameters)[0]

    def log_prob_and_entropy(self, parameters: Tensor, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, each `[...]`: densities of the numbers before they are cut."""
        mean, deviation = self._both(parameters)
        logs = deviation.log() + _HALF_LOG_TWO_PI
        log_prob = -0.5 * ((encoded - mean) / deviation).square() - logs
        return log_prob.sum(-1), (logs + 0.5).sum(-1)

    def to_env(self, encoded: Tensor) -> Tensor:
        """Return actions within their bounds."""
        cut = encoded.clamp(-1, 1)
        return torch.addcmul(self._middle, cut, self._half).clamp(self._low, self._high)

    def from_env(self, action: Tensor) -> Tensor:
        """Return actions scaled to [-1, 1]."""
        return (action.float() - self._middle) / self._half

    def _both(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        mean, deviation = parameters.chunk(2, -1)
        return mean.tanh(), torch.sigmoid(deviation + _SHIFT) * (self._largest - self._least) + self._least


def actions_of(
    space: gymnasium.Space[Any], unimix: float, deviations: tuple[float, float], device: torch.device
) -> Actions:
    """Return the distributions over the actions of an env.

    Raises:
        ConfigError: the actions are neither numbered nor in a bounded box of floats of one dimension.
    """
    if isinstance(space, gymnasium.spaces.Discrete):
        return OneHotActions(int(space.n), int(space.start), unimix)
    is_flat = isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1
    if is_flat and np.issubdtype(space.dtype, np.floating) and space.is_bounded("both"):  # type: ignore[attr-defined]
        return NormalActions(space, deviations, device)  # type: ignore[arg-type]
    raise ConfigError(
        "[model] dreamer needs actions that are numbered (Discrete), or a Box of floats of one dimension with finite "
        f"bounds, not {space}",
        remedy=SCALED if is_flat and np.issubdtype(space.dtype, np.integer) else {},
    )
