"""What a distribution over actions must keep: it sums to one, and samples, entropy and log-probabilities agree."""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from rlcore.types import Distribution

SAMPLES = 100_000


class DistributionContract:
    """Base of the tests of a distribution over one discrete action, or over actions `[..., 1]` of one dimension.

    Attributes:
        parameters: parameters to test with, each a list of `num_parameters` numbers; scales moderate enough that a
            grid of 20,000 points resolves the density.
        discrete: the number of actions, or None.
        bounds: smallest and largest action, of a grid that holds all but 1e-4 of the probability.
        bounded: whether no action may lie outside the bounds.
        extremes: parameters that push samples against the bounds; only ranges and finiteness are tested with them.
        entropy_tolerance: allowed error of the entropy, in nats.
    """

    parameters: ClassVar[list[list[float]]] = []
    discrete: ClassVar[int | None] = None
    bounds: ClassVar[tuple[float, float]] = (-12.0, 12.0)
    bounded: ClassVar[bool] = False
    extremes: ClassVar[list[list[float]]] = []
    entropy_tolerance: ClassVar[float] = 0.02

    def distribution(self) -> Distribution:
        """Build the distribution."""
        raise NotImplementedError

    def samples(self, parameters: list[float], count: int = SAMPLES) -> tuple[Tensor, Tensor]:
        """Return parameters repeated `[count, n]`, and as many samples."""
        distribution = self.distribution()
        repeated = torch.tensor(parameters).expand(count, -1)
        noise = distribution.noise((count,), torch.Generator().manual_seed(1))
        return repeated, distribution.sample(repeated, noise)

    def grid(self) -> tuple[Tensor, float]:
        """Return every action, or the midpoints of a fine grid with the size of a cell."""
        if self.discrete is not None:
            return torch.arange(self.discrete), 1.0
        low, high = self.bounds
        cell = (high - low) / 20_000
        return (low + cell * (torch.arange(20_000, dtype=torch.float64) + 0.5)).float().unsqueeze(-1), cell

    def test_probabilities_sum_to_one(self) -> None:
        """A log-probability without its normalisation or its change of variables biases every ratio."""
        grid, cell = self.grid()
        for parameters in self.parameters:
            log_prob = self.distribution().log_prob(torch.tensor(parameters).expand(len(grid), -1), grid)
            total = float(log_prob.double().exp().sum()) * cell
            assert abs(total - 1) < 2e-3, f"with parameters {parameters} the probabilities sum to {total:.4f}"

    def test_samples_follow_the_log_probabilities(self) -> None:
        """The distribution function of 100,000 samples is that of the density (Kolmogorov-Smirnov distance)."""
        grid, cell = self.grid()
        for parameters in self.parameters:
            density = self.distribution().log_prob(torch.tensor(parameters).expand(len(grid), -1), grid)
            expected = density.double().exp().squeeze(-1).cumsum(0) * cell
            drawn = self.samples(parameters)[1].reshape(-1)
            edges = grid.reshape(-1) + (0 if self.discrete is not None else cell / 2)
            found = torch.searchsorted(drawn.sort().values, edges.to(drawn.dtype), right=True) / SAMPLES
            distance = float((found - expected).abs().max())
            assert distance < 0.01, f"with parameters {parameters} samples and log_prob disagree by {distance:.3f}"

    def test_entropy_is_that_of_the_samples(self) -> None:
        """The entropy equals the mean of -log p over samples."""
        for parameters in self.parameters:
            repeated, drawn = self.samples(parameters)
            expected = -float(self.distribution().log_prob(repeated, drawn).double().mean())
            entropy = self.distribution().entropy(torch.tensor(parameters))
            assert entropy.shape == (1,), f"entropy returns {list(entropy.shape)}, not [..., 1]"
            error = abs(float(entropy) - expected)
            assert error < self.entropy_tolerance, (
                f"with parameters {parameters} the entropy is {float(entropy):.4f}, that of the samples {expected:.4f}"
            )

    def test_actions_stay_inside_the_bounds(self) -> None:
        """The env gets nothing outside its action space, however far the network goes."""
        if not self.bounded:
            pytest.skip("the distribution has no bounds")
        for parameters in [*self.parameters, *self.extremes]:
            drawn = self.samples(parameters)[1]
            mode = self.distribution().mode(torch.tensor(parameters))
            for name, action in (("a sample", drawn), ("the mode", mode)):
                low, high = float(action.min()), float(action.max())
                assert self.bounds[0] <= low, f"with parameters {parameters} {name} is {low!r}, below {self.bounds[0]}"
                assert high <= self.bounds[1], (
                    f"with parameters {parameters} {name} is {high!r}, above {self.bounds[1]}"
                )

    def test_numbers_and_gradients_stay_finite(self) -> None:
        """One infinite log-probability of a rare action ends a run."""
        for chosen in [*self.parameters, *self.extremes]:
            parameters = torch.tensor(chosen).expand(1000, -1).clone().requires_grad_()
            drawn = self.samples(chosen, 1000)[1]
            log_prob, entropy = self.distribution().log_prob(parameters, drawn), self.distribution().entropy(parameters)
            (log_prob.sum() + entropy.sum()).backward()  # type: ignore[no-untyped-call]
            gradient = parameters.grad
            assert log_prob.isfinite().all(), f"with parameters {chosen} a log-probability is not finite"
            assert entropy.isfinite().all(), f"with parameters {chosen} the entropy is not finite"
            assert gradient is not None, "log_prob and entropy give no gradient"
            assert gradient.isfinite().all(), f"with parameters {chosen} a gradient is not finite"

    def test_both_together_are_both_apart(self) -> None:
        """`log_prob_and_entropy` is a shortcut: values and gradients are those of the two."""
        for chosen in [*self.parameters, *self.extremes]:
            drawn = self.samples(chosen, 50)[1]
            results = []
            for together in (True, False):
                distribution, parameters = self.distribution(), torch.tensor(chosen).expand(50, -1).clone()
                parameters.requires_grad_()
                apart = distribution.log_prob(parameters, drawn), distribution.entropy(parameters)
                values = distribution.log_prob_and_entropy(parameters, drawn) if together else apart
                total = sum((factor * value.sum() for factor, value in zip((0.7, -1.3), values, strict=True)))
                (gradient,) = torch.autograd.grad(total, parameters)  # type: ignore[arg-type]
                results.append([*values, gradient])
            for name, one, two in zip(("log_prob", "entropy", "gradient"), *results, strict=True):
                scale = two.detach().abs().max().clamp(min=1.0)
                error = float(((one - two).detach() / scale).abs().max())
                assert error < 1e-4, (
                    f"with parameters {chosen} the {name} of log_prob_and_entropy is off by {error:.1e}"
                )

    def test_leading_shapes_are_kept(self) -> None:
        """One call serves a step, a minibatch and a whole batch."""
        distribution = self.distribution()
        for shape in product((1, 2), (3,)):
            parameters = torch.tensor(self.parameters[0]).expand(*shape, -1)
            noise = distribution.noise(shape, torch.Generator().manual_seed(1))
            drawn = distribution.sample(parameters, noise)
            event = () if self.discrete is not None else (1,)
            assert drawn.shape == (*shape, *event), f"sample gives {list(drawn.shape)} for leading shape {shape}"
            assert distribution.mode(parameters).shape == drawn.shape
            assert distribution.log_prob(parameters, drawn).shape == (*shape, 1)
            assert distribution.entropy(parameters).shape == (*shape, 1)

    def test_the_mode_is_deterministic(self) -> None:
        """Two evaluations of the same weights must agree."""
        for parameters in self.parameters:
            distribution = self.distribution()
            modes = [distribution.mode(torch.tensor(parameters)) for _ in range(2)]
            assert torch.equal(modes[0], modes[1]), "mode draws random numbers"
