"""The hook of fitted Q evaluation: what the policy would earn, from the data alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol

import gymnasium
import torch
from gymnasium.spaces import Box, Discrete
from pydantic import BaseModel, Field
from rlcore_plugin_mlp.leaves import Flat, PackedEncoder, seen_space
from rlcore_plugin_mlp.network import initialise
from rlcore_plugin_mlp.unfilled import unfilled
from torch import Tensor, nn

from rlcore import hookimpl
from rlcore.envs import Packed
from rlcore.errors import ConfigError
from rlcore.types import Context, Key, has_memory, offers

if TYPE_CHECKING:
    from rlcore.types import Trainer

_MOST_STARTS: Final = 1_000


class _WithStarts(Protocol):
    """A buffer that knows how its episodes begin."""

    def initial_observations(self) -> Tensor:
        """Return the first observation of each episode, `[episode, *shape]`."""
        ...


class FittedQHook:
    """Learns the action values of the policy from the minibatches of its training (Le et al., 2019, arXiv 1903.08738).

    After each update it takes one step of its own network on the same minibatch, towards the reward and the discounted
    value of what the policy, as it is then, would do next without noise (algorithm 3, with a target network that
    follows by `target_tau` in the place of whole fits). So the values follow a policy that moves, some hundreds of
    updates behind; of one that stands they are its own. The metric `fqe/value` is the mean value of the first
    observations of the data, which is the expected discounted return; `fqe/loss` is the squared error. It needs no env.

    Raises:
        ConfigError: the buffer does not know how episodes begin, the policy has a state, or the actions are neither a
            box nor one choice.
    """

    observer: Final = True
    ranks: Final = "first"

    class Config(BaseModel, extra="forbid"):
        """The network, and how it learns."""

        hidden: list[int] = Field([256, 256], description="sizes of the hidden layers of its network")
        lr: float = Field(3e-4, gt=0, allow_inf_nan=False, description="learning rate of Adam")
        gamma: float = Field(0.99, ge=0, lt=1, description="discount")
        target_tau: float = Field(0.005, gt=0, le=1, description="how far an update moves the target")

    def __init__(self, config: Config, context: Context) -> None:
        buffer, spec = context.built.get("buffer"), context.env_spec
        if not offers(buffer, _WithStarts):
            raise ConfigError(
                "[hook] fqe: it asks the buffer how episodes begin, which datasets:dataset and datasets:mixed say; "
                "take one of them"
            )
        if has_memory(context.model):
            raise ConfigError("[hook] fqe: it takes single steps, and this policy has a state; leave the hook out")
        if not isinstance(spec.action_space, Box | Discrete):
            raise ConfigError(f"[hook] fqe: actions are {spec.action_space}; it takes a Box or a Discrete space")
        self._config = config
        self._policy: Any = context.model.policy
        self._space = spec.action_space
        starts = buffer.initial_observations()
        every = math.ceil(len(starts) / _MOST_STARTS)
        self._starts = starts[::every].to(context.device)
        self._flat, inputs = _flattened(spec.observation_space)
        discrete = isinstance(self._space, Discrete)
        outputs = int(self._space.n) if isinstance(self._space, Discrete) else 1
        inputs += 0 if discrete else math.prod(self._space.shape or (1,))
        generator = torch.Generator().manual_seed(context.seed("network"))
        self._network = _network([inputs, *config.hidden, outputs], generator).to(context.device)
        self._target = deepcopy(self._network).requires_grad_(False)
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=config.lr)
        self._loss: Tensor | None = None

    @hookimpl
    def post_optim(self, minibatch: Mapping[Key, Tensor]) -> None:
        """Take a step of the network."""
        following = minibatch["next", "observation"]
        with torch.no_grad():
            future = self._values(self._target, following, self._policy.mode(following))
            discount = self._config.gamma ** minibatch.get("steps_to_next_obs", 1)
            target = minibatch["next", "reward"] + discount * ~minibatch["next", "terminated"] * future
        with torch.enable_grad():
            error = self._values(self._network, minibatch["observation"], minibatch["action"]) - target
            loss = error.square().mean()
            self._optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        with torch.no_grad():
            for own, moved in zip(self._target.parameters(), self._network.parameters(), strict=True):
                own.lerp_(moved, self._config.target_tau)
        self._loss = loss.detach()

    @hookimpl
    def post_steps_log(self, trainer: Trainer) -> dict[str, Tensor]:
        """Return the value of the policy, and the error of the last update."""
        return {} if self._loss is None else {"fqe/value": self.value(), "fqe/loss": self._loss}

    def value(self) -> Tensor:
        """Return the mean value of the first observations of the data, a scalar."""
        with torch.no_grad():
            return self._values(self._network, self._starts, self._policy.mode(self._starts)).mean()

    def state_dict(self) -> dict[str, Any]:
        """Return the networks and what Adam remembers."""
        return {
            "network": self._network.state_dict(),
            "target": self._target.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "loss": self._loss,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set them."""
        self._network.load_state_dict(state["network"])
        self._target.load_state_dict(state["target"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._loss = state["loss"]

    def _values(self, network: nn.Module, observation: Tensor, action: Tensor) -> Tensor:
        """Return the values of actions, `[sample, 1]`."""
        flat = self._flat(observation)
        if isinstance(self._space, Discrete):
            chosen = action.reshape(-1, 1) - int(self._space.start)
            return network(flat).gather(-1, chosen)  # type: ignore[no-any-return]
        return network(torch.cat([flat, action.flatten(1)], -1))  # type: ignore[no-any-return]


def _flattened(space: gymnasium.Space[Any]) -> tuple[Callable[[Tensor], Tensor], int]:
    """Return what makes rows of numbers of observations, and how many: of dicts leaf by leaf, but for their mask."""
    if isinstance(space, Packed):
        leaves = Flat(seen_space(space))
        return PackedEncoder(space, leaves), leaves.features
    return _flat, math.prod(space.shape or (1,))


def _flat(observation: Tensor) -> Tensor:
    return observation.flatten(1).float()


def _network(sizes: list[int], generator: torch.Generator) -> nn.Sequential:
    """Return linear layers with ReLU between, whose weights begin as those of torch do."""
    layers: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        linear = unfilled(partial(nn.Linear, inputs, outputs))
        initialise(linear, "torch", 1.0, generator)
        layers += [nn.ReLU(), linear] if number else [linear]
    return nn.Sequential(*layers)
