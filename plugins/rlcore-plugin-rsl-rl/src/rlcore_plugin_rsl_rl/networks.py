"""The networks of the model; their weights have the names of rsl_rl's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from rlcore_plugin_mlp.distributions import Normal
from rlcore_plugin_mlp.network import initialise
from rlcore_plugin_mlp.unfilled import unfilled
from torch import Tensor, nn

from rlcore.envs import Packed
from rlcore.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Group

Activation = Literal["elu", "selu", "relu", "crelu", "lrelu", "tanh", "sigmoid", "softplus", "gelu", "swish", "mish"]
_ACTIVATIONS: Final[dict[str, type[nn.Module]]] = {
    "elu": nn.ELU,
    "selu": nn.SELU,
    "relu": nn.ReLU,
    "crelu": nn.CELU,
    "lrelu": nn.LeakyReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "softplus": nn.Softplus,
    "gelu": nn.GELU,
    "swish": nn.SiLU,
    "mish": nn.Mish,
}


class Seen(nn.Module):
    """Rows of observations to the numbers that a network sees, `[..., numbers]`: some groups side by side.

    Args:
        space: of the rows.
        names: of the groups.
        key: of the config, for messages.

    Raises:
        ConfigError: there is no such group, or a group is no vector.

    Attributes:
        size: how many numbers that are.
    """

    def __init__(self, space: gymnasium.Space[Any], names: Sequence[str], key: str) -> None:
        super().__init__()
        self._space = space if isinstance(space, Packed) else None
        self._names = tuple(names)
        leaves = space.leaves if isinstance(space, Packed) else {"": space}
        for name in names:
            if name not in leaves:
                there = ", ".join(leaves) if self._space is not None else "one array, and this key counts for nothing"
                raise ConfigError(
                    f"[model] {key}: there is no group {name!r}{did_you_mean(name, leaves)}; it is {there}"
                )
        self.size = 0
        for name in names or [""]:
            shape = leaves[name].shape or ()
            if len(shape) != 1:
                raise ConfigError(
                    f"[model] rsl-rl takes observations that are vectors; {name or 'they'} has the shape {list(shape)}"
                )
            self.size += shape[0]

    def forward(self, rows: Tensor) -> Tensor:
        """Return the numbers, as float32."""
        if self._space is None:
            return rows.float()
        groups: list[Tensor] = [self._space.tensor(rows, name).float() for name in self._names]
        return torch.cat(groups, -1)


class Normalizer(nn.Module):
    """Brings numbers to mean 0 and deviation 1 over all that it was shown, as rsl_rl's `EmpiricalNormalization`.

    Args:
        size: how many numbers.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._epsilon = 1e-2
        for name, value in (("_mean", 0.0), ("_var", 1.0), ("_std", 1.0)):
            self.register_buffer(name, torch.full((1, size), value))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the normalised numbers."""
        state: Any = self
        normalised: Tensor = (numbers - state._mean) / (state._std + self._epsilon)
        return normalised

    @torch.no_grad()
    def update(self, numbers: Tensor, group: Group) -> None:
        """Take in numbers `[row, numbers]`, those of all ranks together."""
        state: Any = self
        sums = _joint(torch.cat([numbers.sum(0), numbers.new_full((1,), len(numbers))]), group)
        count = sums[-1]
        mean = sums[:-1] / count
        variance = _joint((numbers - mean).square().sum(0), group) / count
        state.count += count.long()
        rate = count / state.count
        change = mean - state._mean
        state._mean += rate * change
        state._var += rate * (variance - state._var + change * (mean - state._mean))
        state._std.copy_(state._var.sqrt())


def _joint(numbers: Tensor, group: Group) -> Tensor:
    """Return the sum over all ranks."""
    if group.size > 1:
        group.sum_(numbers)
    return numbers


class Network(nn.Module):
    """An MLP of the groups that it sees.

    Args:
        seen: takes the groups out of observations.
        sizes: hidden sizes, and outputs.
        activation: between the layers.
        normalizes: whether what it sees is normalised first.
        generator: samples the weights, by torch's own way.
    """

    def __init__(
        self, seen: Seen, sizes: Sequence[int], activation: str, normalizes: bool, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.seen = seen
        self.obs_normalizer = Normalizer(seen.size) if normalizes else nn.Identity()
        layers: list[nn.Module] = []
        for pair in itertools.pairwise([seen.size, *sizes]):
            layer = unfilled(partial(nn.Linear, *pair))
            initialise(layer, "torch", math.nan, generator)
            layers += [layer, _ACTIVATIONS[activation]()]
        self.mlp = nn.Sequential(*layers[:-1])

    def forward(self, observation: Tensor) -> Tensor:
        """Return the outputs."""
        return self.mlp(self.obs_normalizer(self.seen(observation)))  # type: ignore[no-any-return]

    def update_normalization(self, observation: Tensor, group: Group) -> None:
        """Show the normaliser observations `[row, ...]`, where there is one."""
        if isinstance(self.obs_normalizer, Normalizer):
            self.obs_normalizer.update(self.seen(observation), group)


class Actor(Network):
    """Observations to locations and log standard deviations of actions; the latter are the same for all observations.

    Args:
        num_actions: how many numbers an action has.
        init_std: the standard deviations in the beginning.
        std_type: whether the parameters are those, or their logarithms.
        std_range: their limits.
        learn_std: whether they are trained.
        network: the further arguments, those of `Network`; the sizes are hidden ones alone.
    """

    def __init__(
        self,
        num_actions: int,
        init_std: float,
        std_type: str,
        std_range: tuple[float, float],
        learn_std: bool,
        seen: Seen,
        hidden: Sequence[int],
        **network: Any,
    ) -> None:
        super().__init__(seen, [*hidden, num_actions], **network)
        self.distribution = Normal(num_actions, log_scale=True)
        self._low, self._high = max(std_range[0], 1e-6), std_range[1]
        self._is_log = std_type == "log"
        initial = torch.full((num_actions,), math.log(init_std) if self._is_log else init_std)
        name = "log_std_param" if self._is_log else "std_param"
        self.register_parameter(name, nn.Parameter(initial, requires_grad=learn_std))

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution."""
        location = super().forward(observation)
        return torch.cat([location, self.log_std().expand_as(location)], -1)

    def log_std(self) -> Tensor:
        """Return the logarithms of the standard deviations within their limits, `[action]`."""
        own: Any = self
        if self._is_log:
            return own.log_std_param.clamp(math.log(self._low), math.log(self._high))  # type: ignore[no-any-return]
        return own.std_param.clamp(self._low, self._high).log()  # type: ignore[no-any-return]

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass."""
        return self
