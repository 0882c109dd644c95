"""The dynamics ensemble: N probabilistic networks as one, from observations and actions to what comes of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

import torch
from rlcore_plugin_sac.critics import BatchedLinear, members, whole
from rlcore_plugin_sac.norms import Take
from torch import Tensor, nn

# where the bounds of the log-variances begin, as in the code of Chua et al. (2018); targets have unit variance here
LARGEST_LOG_VARIANCE: Final = 0.5
LEAST_LOG_VARIANCE: Final = -10.0
_ENDS_HIDDEN: Final = (64, 64)


class Outputs(NamedTuple):
    """What the members say of each row, about targets that are normalised.

    Attributes:
        mean: `[member, row, target]`.
        log_variance: `[member, row, target]`.
    """

    mean: Tensor
    log_variance: Tensor


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

    Where episodes end is learned, if it is, by a smaller network of each member, which sees the next observation too:
    ends follow from where a step leads, and a rule such as `|angle| > 0.2` is easy to learn from there.

    Args:
        observation: size of an observation.
        action: size of an action.
        count: members.
        elites: how many of them imagine: those with the least error on held-out rows.
        hidden: hidden sizes of each.
        learns_termination: whether it learns where episodes end.
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
        inputs = observation + action
        self.layers = _layers(count, [inputs, *hidden, 2 * self.targets], generator)
        self.end_layers = None
        if learns_termination:
            self.end_layers = _layers(count, [inputs + observation, *_ENDS_HIDDEN, 1], generator)
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
        outputs = _through(self.layers, inputs, take)
        mean, log_variance = outputs.chunk(2, -1)
        log_variance = self.largest - nn.functional.softplus(self.largest - log_variance)
        log_variance = self.least + nn.functional.softplus(log_variance - self.least)
        return Outputs(mean, log_variance)

    def ends(self, inputs: Tensor, following: Tensor, take: Take = whole) -> Tensor | None:
        """Return logits of the end of an episode, `[member, row, 1]`; None where that is not learned.

        Args:
            inputs: as for `forward`.
            following: normalised next observations, of the same shape.
            take: the members.
        """
        if self.end_layers is None:
            return None
        return _through(self.end_layers, torch.cat([inputs, following], -1), take)

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
        return _normalised(torch.cat([observation, action], -1), self.input_mean, self.input_scale)

    def following_of(self, observation: Tensor) -> Tensor:
        """Return normalised next observations `[..., observation]`, as the ends are learned from."""
        size = observation.shape[-1]
        return _normalised(observation, self.input_mean[:size], self.input_scale[:size])

    def normalised(self, targets: Tensor) -> Tensor:
        """Return targets `[..., target]` as the members predict them."""
        return _normalised(targets, self.target_mean, self.target_scale)

    @torch.no_grad()
    def imagine(
        self, observation: Tensor, action: Tensor, generator: torch.Generator, deviation: bool = False
    ) -> Imagined:
        """Return what follows, each row sampled from one elite, chosen at random; each has as many rows.

        Args:
            observation: `[row, observation]`.
            action: `[row, action]`.
            generator: chooses the elites, and samples; on the device of the rows.
            deviation: whether to ask all members how unsure they are.
        """
        inputs, take = self.inputs_of(observation, action), members(self.elites)
        dealt, back = self._deal(observation.shape[0], generator)
        outputs = self(inputs[dealt], take)
        noise = torch.randn(outputs.mean.shape, generator=generator, device=dealt.device)
        change = self.target_mean + self.target_scale * (outputs.mean + (outputs.log_variance / 2).exp() * noise)
        following, reward = observation[dealt] + change[..., :-1], change[..., -1:]
        ends = self.ends(inputs[dealt], self.following_of(following), take)
        return Imagined(
            following.flatten(0, 1)[back],
            reward.flatten(0, 1)[back],
            None if ends is None else ends.flatten(0, 1)[back],
            self._deviation(inputs) if deviation else None,
        )

    def _deal(self, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return which rows each elite gets, `[elite, share]`, and where each row then lies, `[row]`."""
        device, elites = self.elites.device, len(self.elites)
        order = torch.randperm(rows, generator=generator, device=device)
        share = -(-rows // elites)
        back = torch.empty_like(order)
        back[order] = torch.arange(rows, device=device)
        return torch.cat([order, order[:1].expand(share * elites - rows)]).view(elites, share), back

    def _deviation(self, inputs: Tensor) -> Tensor:
        """Return the largest norm of the members' standard deviations, in the units of the data, `[row, 1]`."""
        spread: Tensor = (self(inputs).log_variance / 2).exp() * self.target_scale
        largest: Tensor = torch.linalg.vector_norm(spread, dim=-1).amax(0)
        return largest.unsqueeze(-1)


def _layers(count: int, sizes: Sequence[int], generator: torch.Generator) -> nn.ModuleList:
    layers = [BatchedLinear(count, *pair) for pair in itertools.pairwise(sizes)]
    for layer in layers:
        layer.initialise("torch", 1.0, generator)
    return nn.ModuleList(layers)


def _through(layers: nn.ModuleList, inputs: Tensor, take: Take) -> Tensor:
    """Return what layers make of `[row, input]` or `[member, row, input]`, `[member, row, output]`."""
    *hidden, last = layers
    for layer in hidden:
        inputs = nn.functional.silu(layer(inputs, take))
    return last(inputs, take)  # type: ignore[no-any-return]


def _normalised(values: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    return (values - mean) / torch.where(scale > 0, scale, 1.0)


def _scale(values: Tensor) -> Tensor:
    """Return standard deviations `[column]`; 0 of what never changes, whatever rounding says."""
    deviation = values.std(0, correction=0)
    return torch.where(values.amax(0) > values.amin(0), deviation, torch.zeros_like(deviation))
