"""One update of FlashSAC as its authors' PyTorch code does it, written again with nothing around it.

The order, the shapes and the kinds of calls are those of github.com/Holiday-Robot/FlashSAC (MIT): batched critics by
`einsum`, batch norms of both ends of a transition, targets in training mode, three Adam optimizers with actor and
temperature first in every second update, weights brought back to length 1 after each step, then the targets' average.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

OBSERVATION, ACTION, SAMPLES, ATOMS, LARGEST, GAMMA = 17, 6, 512, 101, 5.0, 0.99


class Unit(nn.Module):
    """A linear map of each copy, with weights of length 1."""

    def __init__(self, copies: int, inputs: int, outputs: int, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(copies, outputs, inputs))
        for each in self.weight.data:
            nn.init.orthogonal_(each)
        self.bias = nn.Parameter(torch.zeros(copies, 1, outputs)) if bias else None

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs `[copy, sample, outputs]`."""
        outputs = torch.einsum("nbi,noi->nbo", inputs, self.weight)
        return outputs if self.bias is None else outputs + self.bias

    def bound(self) -> None:
        """Divide the weights of each output by their length."""
        self.weight.copy_(functional.normalize(self.weight, dim=-1, eps=1e-8))


class Batch(nn.Module):
    """Batch normalisation of each copy."""

    def __init__(self, copies: int, features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(copies, 1, features))
        self.shift = nn.Parameter(torch.zeros(copies, 1, features))
        self.register_buffer("mean", torch.zeros(copies, 1, features))
        self.register_buffer("variance", torch.ones(copies, 1, features))

    def forward(self, inputs: Tensor, training: bool) -> Tensor:
        """Return normalised inputs."""
        if not training:
            return (inputs - self.mean) * torch.rsqrt(self.variance + 1e-5) * self.scale + self.shift
        mean = inputs.mean(dim=1, keepdim=True)
        variance = inputs.var(dim=1, correction=0, keepdim=True)
        with torch.no_grad():
            samples = inputs.shape[1]
            self.mean.lerp_(mean, 0.01)
            self.variance.lerp_(variance * (samples / (samples - 1)), 0.01)
        return (inputs - mean) * torch.rsqrt(variance + 1e-5) * self.scale + self.shift

    def bound(self) -> None:
        """Bring scale and shift to the root of their number."""
        squares = torch.sum(self.scale * self.scale + self.shift * self.shift, dim=-1, keepdim=True)
        factor = math.sqrt(self.scale.shape[-1]) * torch.rsqrt(squares + 1e-8)
        self.scale.copy_(self.scale * factor)
        self.shift.copy_(self.shift * factor)


class Block(nn.Module):
    """An inverted residual block."""

    def __init__(self, copies: int, width: int) -> None:
        super().__init__()
        self.widen, self.narrow = Unit(copies, width, 4 * width), Unit(copies, 4 * width, width)
        self.first, self.second = Batch(copies, 4 * width), Batch(copies, width)

    def forward(self, inputs: Tensor, training: bool) -> Tensor:
        """Return the outputs."""
        hidden = functional.relu(self.first(self.widen(inputs), training))
        return functional.relu(self.second(self.narrow(hidden), training)) + inputs


class Network(nn.Module):
    """An embedding, two blocks, and a head."""

    def __init__(self, copies: int, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.norm, self.embed = Batch(copies, inputs), Unit(copies, inputs, width)
        self.blocks = nn.ModuleList(Block(copies, width) for _ in range(2))
        self.last = nn.Parameter(torch.ones(copies, 1, width))
        self.head = Unit(copies, width, outputs, bias=True)

    def forward(self, inputs: Tensor, training: bool) -> Tensor:
        """Return the outputs `[copy, sample, outputs]`."""
        hidden = self.embed(self.norm(inputs, training))
        for block in self.blocks:
            hidden = block(hidden, training)
        root = torch.sqrt(torch.mean(hidden * hidden, dim=-1, keepdim=True) + 1e-6)
        return self.head(hidden / root * self.last)

    @torch.no_grad()
    def bound(self) -> None:
        """Keep all bounds."""
        for module in self.modules():
            if isinstance(module, Unit | Batch):
                module.bound()
        squares = torch.sum(self.last * self.last, dim=-1, keepdim=True)
        self.last.copy_(self.last * (math.sqrt(self.last.shape[-1]) * torch.rsqrt(squares + 1e-8)))


class Updates:
    """Takes updates.

    Args:
        compiled: whether networks, bounds and averages are compiled, as the published code compiles them.
    """

    def __init__(self, compiled: bool) -> None:
        self.actor = Network(1, OBSERVATION, 128, 2 * ACTION)
        self.critic = Network(2, OBSERVATION + ACTION, 256, ATOMS)
        self.actor.bound()
        self.critic.bound()
        self.target = copy.deepcopy(self.critic)
        self.log_alpha = nn.Parameter(torch.tensor(math.log(0.01)))
        self.support = torch.linspace(-LARGEST, LARGEST, ATOMS)
        self.target_entropy = 0.5 * ACTION * math.log(2 * math.pi * math.e * 0.15**2)
        self.optimizers = [
            torch.optim.Adam(parameters, lr=3e-4)
            for parameters in (self.actor.parameters(), self.critic.parameters(), [self.log_alpha])
        ]
        wrap: Callable[[Any], Any] = torch.compile if compiled else lambda function: function
        self.act, self.value, self.target_value = (wrap(each) for each in (self.actor, self.critic, self.target))
        self.bound_actor, self.bound_critic = wrap(self.actor.bound), wrap(self.critic.bound)
        self.project = wrap(self._project)
        self.done = 0

    def __call__(self, batch: Mapping[str, Tensor]) -> None:
        """Take one, of a batch of `observation`, `action`, `reward`, `following` and `ended`."""
        if self.done % 2 == 0:
            self._actor_and_temperature(batch)
        self._critic(batch)
        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(self.critic.parameters()), 0.01)
        self.done += 1

    def _sample(self, observation: Tensor, training: bool) -> tuple[Tensor, Tensor]:
        mean, raw = self.act(observation.unsqueeze(0), training)[0].chunk(2, -1)
        normal = torch.distributions.Normal(mean, torch.exp(-10 + 6 * (1 + torch.tanh(raw))), validate_args=False)
        inner = normal.rsample()
        slope = 2 * (math.log(2) - inner - functional.softplus(-2 * inner))
        return torch.tanh(inner), (normal.log_prob(inner) - slope).sum(1)

    def _values(self, network: Any, observation: Tensor, action: Tensor, training: bool) -> tuple[Tensor, Tensor]:
        inputs = torch.cat((observation, action), dim=-1).unsqueeze(0).expand(2, -1, -1)
        log_probs = functional.log_softmax(network(inputs, training), dim=-1)
        return torch.sum(torch.exp(log_probs) * self.support, dim=-1), log_probs

    def _actor_and_temperature(self, batch: Mapping[str, Tensor]) -> None:
        actions, densities = self._sample(torch.cat([batch["observation"], batch["following"]]), True)
        actions, densities = actions.chunk(2)[0], densities.chunk(2)[0]
        self.critic.requires_grad_(False)
        values, _ = self._values(self.value, batch["observation"], actions, False)
        self.critic.requires_grad_(True)
        loss = (densities * self.log_alpha.exp().detach() - torch.minimum(values[0], values[1])).mean()
        self._step(0, loss)
        self.bound_actor()
        self._step(2, self.log_alpha.exp() * (-densities.detach().mean() - self.target_entropy))

    def _critic(self, batch: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            actions, densities = self._sample(batch["following"], False)
            observations = torch.cat([batch["observation"], batch["following"]])
            actions = torch.cat([batch["action"], actions])
            values, log_probs = self._values(self.target_value, observations, actions, True)
            least = values.chunk(2, dim=1)[1].argmin(0)
            chosen = log_probs.chunk(2, dim=1)[1].gather(0, least[None, :, None].expand(1, -1, ATOMS))[0]
            target = self.project(chosen, batch["reward"], batch["ended"], self.log_alpha.exp() * densities)
        _, log_probs = self._values(self.value, observations, actions, True)
        self._step(1, -(target.unsqueeze(0) * log_probs.chunk(2, dim=1)[0]).sum(-1).mean())
        self.bound_critic()

    def _project(self, log_probs: Tensor, reward: Tensor, ended: Tensor, cost: Tensor) -> Tensor:
        returns = reward[:, None] + GAMMA * (self.support - cost[:, None]) * (1 - ended[:, None])
        places = (returns.clamp(-LARGEST, LARGEST) + LARGEST) / (2 * LARGEST / (ATOMS - 1))
        lower = places.floor().long()
        share, probs = places - lower, log_probs.exp()
        projected = torch.zeros_like(probs)
        projected.scatter_add_(1, lower, probs * (1 - share))
        return projected.scatter_add_(1, (lower + 1).clamp(max=ATOMS - 1), probs * share)

    def _step(self, number: int, loss: Tensor) -> None:
        self.optimizers[number].zero_grad(set_to_none=True)
        loss.backward()
        self.optimizers[number].step()


def random_batch(generator: torch.Generator) -> dict[str, Tensor]:
    """Return a batch of random transitions."""
    return {
        "observation": torch.randn(SAMPLES, OBSERVATION, generator=generator),
        "action": torch.rand(SAMPLES, ACTION, generator=generator) * 2 - 1,
        "reward": torch.randn(SAMPLES, generator=generator) * 0.1,
        "following": torch.randn(SAMPLES, OBSERVATION, generator=generator),
        "ended": torch.zeros(SAMPLES),
    }
