"""The dynamics ensemble: N probabilistic networks as one, from observations and actions to what comes of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from rlcore_plugin_sac.critics import BatchedLinear, members, whole
from rlcore_plugin_sac.norms import Take
from torch import Tensor, nn

# where the bounds of the log-variances begin, as in the code of Chua et al. (2018); targets have unit variance here
LARGEST_LOG_VARIANCE, LEAST_LOG_VARIANCE = 0.5, -10.0


class Outputs(NamedTuple):
    """What the members say of each row, about targets that are normalised.

    Attributes:
        mean: `[member, row, target]`.
        log_variance: `[member, row, target]`.
        termination: logits `[member, row, 1]`; None of an ensemble that does not learn them.
    """

    mean: Tensor
    log_variance: Tensor
    termination: Tensor | None


class Imagined(NamedTuple):
    """What the ensemble imagines to follow.

    Attributes:
        observation: the next ones, `[row, observation]`.
        reward: `[row, 1]`.
        termination: logits `[row, 1]`; None of an ensemble that does not learn them.
        deviation: the largest norm of the members' standard deviations in the units of the data, `[row, 1]`; None
            where nobody asked.
    """

    observation: Tensor
    reward: Tensor
    termination: Tensor | None
    deviation: Tensor | None


class Dynamics(nn.Module):
    """Normal distributions over the change of the observation and the reward, by N members (Chua et al., 2018).

    Every weight has a dimension of members, so that one batched product serves all of them. Inputs are normalised by
    the statistics of the data, and so are the targets: the bounds of the variances mean the same for every env. A
    target that never changes in the data stays what it is.

    Args:
        observation: size of an observation.
        action: size of an action.
        count: members.
        elites: how many of them imagine: those with the least error on held-out rows.
        hidden: hidden sizes of each.
        learns_termination: whether another output says where episodes end.
        generator: samples the weights.

    Attributes:
        count: as given.
        targets: size of what is predicted: an observation and a reward.
        elites: their numbers, int64 `[elite]`.
        low: the least observations of the data, `[observation]`; they change with the statistics.
        high: the largest ones.
    """

    elites: Tensor
    low: Tensor
    high: Tensor
    input_mean: Tensor
    input_scale: Tensor
    target_mean: Tensor
    target_scale: Tensor

    def __init__(
        self,
        observation: int,
        action: int,
        count: int,
        elites: int,
        hidden: Sequence[int],
        learns_termination: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.count, self.targets = count, observation + 1
        self._learns_termination = learns_termination
        inputs, outputs = observation + action, 2 * self.targets + learns_termination
        sizes = [inputs, *hidden, outputs]
        self.layers = nn.ModuleList(BatchedLinear(count, *pair) for pair in itertools.pairwise(sizes))
        for layer in self.layers:
            assert isinstance(layer, BatchedLinear)
            layer.initialise("torch", 1.0, generator)
        self.largest = nn.Parameter(torch.full((self.targets,), LARGEST_LOG_VARIANCE))
        self.least = nn.Parameter(torch.full((self.targets,), LEAST_LOG_VARIANCE))
        self.register_buffer("elites", torch.arange(elites))
        for name, size in (("input", inputs), ("target", self.targets)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_scale", torch.ones(size))
        self.register_buffer("low", torch.zeros(observation))
        self.register_buffer("high", torch.zeros(observation))

    def forward(self, inputs: Tensor, take: Take = whole) -> Outputs:
        """Return the outputs for normalised inputs `[row, input]`, or `[member, row, input]` with rows for each."""
        *layers, last = self.layers
        hidden = inputs
        for layer in layers:
            hidden = nn.functional.silu(layer(hidden, take))
        outputs = last(hidden, take)
        mean, log_variance = outputs[..., : self.targets], outputs[..., self.targets : 2 * self.targets]
        log_variance = self.largest - nn.functional.softplus(self.largest - log_variance)
        log_variance = self.least + nn.functional.softplus(log_variance - self.least)
        return Outputs(mean, log_variance, outputs[..., -1:] if self._learns_termination else None)

    @torch.no_grad()
    def fit_statistics(self, observation: Tensor, action: Tensor, following: Tensor, reward: Tensor) -> None:
        """Take the statistics of all rows `[row, ...]` of the data."""
        self.input_mean.copy_(torch.cat([observation.mean(0), action.mean(0)]))
        self.input_scale.copy_(torch.cat([_scale(observation), _scale(action)]))
        targets = self.targets_of(observation, following, reward)
        self.target_mean.copy_(targets.mean(0))
        self.target_scale.copy_(_scale(targets))
        self.low.copy_(torch.minimum(observation.amin(0), following.amin(0)))
        self.high.copy_(torch.maximum(observation.amax(0), following.amax(0)))

    def targets_of(self, observation: Tensor, following: Tensor, reward: Tensor) -> Tensor:
        """Return what is to be predicted, `[row, target]`, in the units of the data."""
        return torch.cat([following - observation, reward], -1)

    def inputs_of(self, observation: Tensor, action: Tensor) -> Tensor:
        """Return normalised inputs `[..., input]`."""
        inputs = torch.cat([observation, action], -1) - self.input_mean
        return inputs / torch.where(self.input_scale > 0, self.input_scale, 1.0)

    def normalised(self, targets: Tensor) -> Tensor:
        """Return targets `[..., target]` as the members predict them."""
        return (targets - self.target_mean) / torch.where(self.target_scale > 0, self.target_scale, 1.0)

    @torch.no_grad()
    def imagine(
        self, observation: Tensor, action: Tensor, generator: torch.Generator, deviation: bool = False
    ) -> Imagined:
        """Return what follows, each row sampled from one elite, chosen at random.

        Args:
            observation: `[row, observation]`.
            action: `[row, action]`.
            generator: chooses the elites, and samples; on the device of the rows.
            deviation: whether to ask all members how unsure they are.
        """
        rows, device = observation.shape[0], observation.device
        inputs = self.inputs_of(observation, action)
        noise = torch.randn(rows, self.targets, generator=generator, device=device)
        unsure = None
        if deviation:
            outputs = self(inputs)
            spread = (outputs.log_variance / 2).exp() * self.target_scale
            unsure = spread.norm(dim=-1).amax(0).unsqueeze(-1)
            chosen = torch.randint(len(self.elites), (rows,), generator=generator, device=device)
            member, row = self.elites[chosen], torch.arange(rows, device=device)
            outputs = Outputs(*(None if each is None else each[member, row] for each in outputs))  # type: ignore[arg-type]
        else:
            outputs = self._each_by_one(inputs, torch.randperm(rows, generator=generator, device=device))
        sampled = outputs.mean + (outputs.log_variance / 2).exp() * noise
        change = self.target_mean + self.target_scale * sampled
        return Imagined(observation + change[:, :-1], change[:, -1:], outputs.termination, unsure)

    def _each_by_one(self, inputs: Tensor, order: Tensor) -> Outputs:
        """Return outputs `[row, ...]`, each by one elite: every elite gets as many rows of the order."""
        rows, elites = inputs.shape[0], len(self.elites)
        share = -(-rows // elites)
        dealt = torch.cat([order, order[:1].expand(share * elites - rows)]).view(elites, share)
        outputs = self(inputs[dealt], members(self.elites))
        back = torch.empty_like(order)
        back[order] = torch.arange(rows, device=order.device)
        return Outputs(*(None if each is None else each.flatten(0, 1)[back] for each in outputs))  # type: ignore[arg-type]


def _scale(values: Tensor) -> Tensor:
    """Return standard deviations `[column]`; 0 of what never changes, whatever rounding says."""
    deviation = values.std(0, correction=0)
    return torch.where(values.amax(0) > values.amin(0), deviation, torch.zeros_like(deviation))
