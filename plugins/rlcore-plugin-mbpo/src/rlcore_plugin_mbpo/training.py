"""Learning the dynamics: the loss of an ensemble, its own optimizer, early stopping on held-out rows, its elites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import torch
from rlcore_plugin_sac.critics import BatchedLinear
from torch import Tensor, nn

from rlcore.errors import NumericalError
from rlcore.types import Context
from rlcore_plugin_mbpo.config import ImaginationConfig
from rlcore_plugin_mbpo.dynamics import Dynamics

_MOST_HELD_OUT: Final = 5_000
_BETTER: Final = 0.01  # the least part of the best error that counts as progress
_BOUNDS: Final = 0.01  # weight of the bounds of the variances


class Rows(NamedTuple):
    """Real transitions.

    Attributes:
        observation: `[row, observation]`, float32, as are the others but the last.
        action: `[row, action]`.
        following: the next observations, `[row, observation]`.
        reward: `[row, 1]`.
        terminated: `[row, 1]`, float32: 1 or 0.
    """

    observation: Tensor
    action: Tensor
    following: Tensor
    reward: Tensor
    terminated: Tensor


class _Normalised(NamedTuple):
    inputs: Tensor
    targets: Tensor
    following: Tensor
    terminated: Tensor

    def at(self, index: Tensor) -> _Normalised:
        return _Normalised(*(column[index] for column in self))


class Learned(NamedTuple):
    """What came of it.

    Attributes:
        error: mean error of the elites on held-out rows.
        epochs: that it took.
    """

    error: float
    epochs: int


class DynamicsTraining:
    """Trains an ensemble on all real transitions, each member on a bootstrap sample of its own.

    The loss is the negative log-likelihood of Chua et al. (2018, arXiv 1805.12114, equation 1), with learned bounds of
    the variances; where termination is learned, plus its cross entropy. The error on held-out rows, the squared error
    of the means and that cross entropy, decides when to stop, which weights of each member stay, and who the elites
    are, as in the code of Janner et al. (2019).

    Args:
        dynamics: what is trained.
        config: of the buffer.
        context: of the buffer.
    """

    def __init__(self, dynamics: Dynamics, config: ImaginationConfig, context: Context) -> None:
        self._dynamics = dynamics
        self._config = config
        self._heart = context.heart
        self._generator = context.generator("dynamics")
        layers = [layer for layer in dynamics.modules() if isinstance(layer, BatchedLinear)]
        self._of_members = [parameter for layer in layers for parameter in (layer.weight, layer.bias)]
        weights = [layer.weight for layer in layers]
        others = [layer.bias for layer in layers] + [dynamics.largest, dynamics.least]
        groups: list[dict[str, Any]] = [
            {"params": weights, "weight_decay": config.dynamics_weight_decay},
            {"params": others},
        ]
        self._parameters = [*weights, *others]
        self._optimizer = torch.optim.Adam(groups, lr=config.dynamics_lr, fused=True)

    def __call__(self, rows: Rows) -> Learned:
        """Train until the held-out rows are predicted no better, at least two rows; choose the elites.

        Raises:
            NumericalError: an error is not finite.
        """
        dynamics, count = self._dynamics, rows.observation.shape[0]
        dynamics.fit_statistics(*rows[:4])
        targets = dynamics.normalised(dynamics.targets_of(rows.observation, rows.following, rows.reward))
        inputs, following = dynamics.inputs_of(rows.observation, rows.action), dynamics.following_of(rows.following)
        data = _Normalised(inputs, targets, following, rows.terminated)
        order = torch.randperm(count, generator=self._generator, device=targets.device)
        held = min(_MOST_HELD_OUT, max(1, int(count * self._config.held_out)))
        for parameter in self._parameters:
            parameter.requires_grad_(True)
        try:
            return self._learn(data.at(order[held:]), data.at(order[:held]))
        finally:
            for parameter in self._parameters:
                parameter.requires_grad_(False)
                parameter.grad = None

    def _learn(self, train: _Normalised, held_out: _Normalised) -> Learned:
        members, rows = self._dynamics.count, train.inputs.shape[0]
        device, generator = train.inputs.device, self._generator
        sampled = torch.randint(rows, (members, rows), generator=generator, device=device)
        best, kept = self._errors(held_out), self._weights()
        epochs = waited = 0
        while waited < self._config.dynamics_patience and epochs < self._config.dynamics_max_epochs:
            order = torch.rand(members, rows, generator=generator, device=device).argsort(-1)
            self._epoch(train, sampled.gather(-1, order))
            errors = self._errors(held_out)
            better = best - errors > _BETTER * best
            kept = [_chosen(better, new, old) for new, old in zip(self._weights(), kept, strict=True)]
            best = torch.where(better, errors, best)
            epochs += 1
            progress, finite = torch.stack([better.any(), errors.isfinite().all()]).tolist()
            if not finite:
                raise NumericalError(
                    f"the dynamics predict what is not finite after {epochs} epochs; lower [buffer] dynamics_lr, or "
                    "look for the cause in rewards and observations"
                )
            waited = 0 if progress else waited + 1
        with torch.no_grad():
            for parameter, weights in zip(self._of_members, kept, strict=True):
                parameter.copy_(weights)
            elites = best.argsort()[: len(self._dynamics.elites)]
            self._dynamics.elites.copy_(elites)
        return Learned(float(best[elites].mean()), epochs)

    def _epoch(self, train: _Normalised, order: Tensor) -> None:
        """Take a step with each minibatch of the rows `[member, row]`, in this order."""
        for index in torch.split(order, self._config.dynamics_minibatch_size, -1):
            self._heart.beats += 1
            self._optimizer.zero_grad()
            torch.autograd.backward(self._loss(train.at(index)))
            self._optimizer.step()

    def _loss(self, batch: _Normalised) -> Tensor:
        """Return the sum over the members of their mean loss, 0-d."""
        outputs = self._dynamics(batch.inputs)
        squares = (outputs.mean - batch.targets).square() * (-outputs.log_variance).exp()
        loss: Tensor = (squares + outputs.log_variance).mean((1, 2)).sum()
        if (ends := self._dynamics.ends(batch.inputs, batch.following)) is not None:
            loss = loss + _cross_entropy(ends, batch.terminated).sum()
        return loss + _BOUNDS * (self._dynamics.largest.sum() - self._dynamics.least.sum())

    @torch.no_grad()
    def _errors(self, held_out: _Normalised) -> Tensor:
        """Return the error of each member, `[member]`."""
        outputs = self._dynamics(held_out.inputs)
        errors: Tensor = (outputs.mean - held_out.targets).square().mean((1, 2))
        if (ends := self._dynamics.ends(held_out.inputs, held_out.following)) is not None:
            errors = errors + _cross_entropy(ends, held_out.terminated.expand_as(ends))
        return errors

    def _weights(self) -> list[Tensor]:
        return [parameter.detach().clone() for parameter in self._of_members]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the optimizer, and the position of the generator; the weights are the model's."""
        return {"optimizer": self._optimizer.state_dict(), "generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take both back; the keys of the config stay."""
        groups = self._optimizer.state_dict()["param_groups"]
        moments = {
            number: {name: value.clone() for name, value in entries.items()}  # those of the state may be mapped
            for number, entries in state["optimizer"]["state"].items()
        }
        self._optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self._generator.set_state(state["generator"])


def _cross_entropy(logits: Tensor, terminated: Tensor) -> Tensor:
    """Return the mean cross entropy of each member, `[member]`."""
    return nn.functional.binary_cross_entropy_with_logits(logits, terminated, reduction="none").mean((1, 2))


def _chosen(better: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Return the new weights of the members that became better, and the old ones of the others."""
    return torch.where(better.view(-1, *[1] * (new.ndim - 1)), new, old)
