"""Hand-written updates of IQL, CQL and TD3+BC: tensors, fused Adam, rows of one array; no library but torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import torch
from bare_off_policy import Adam, Weights, forward, mlp
from torch import Tensor
from torch.nn import functional

GAMMA, TAU, SAMPLES = 0.99, 0.005, 10
_HALF_LOG_TWO_PI: Final = 0.5 * math.log(2 * math.pi)


class Update:
    """Networks of two hidden layers of 256, and one update of a minibatch of rows.

    Args:
        algorithm: iql, cql or td3-bc.
        observed: numbers of an observation.
        actions: numbers of an action, in [-1, 1].
        compiled: whether the update is compiled.
    """

    def __init__(self, algorithm: str, observed: int, actions: int, compiled: bool) -> None:
        self._observed, self._actions = observed, actions
        heads = 2 if algorithm == "cql" else 1
        self._actor = mlp([observed, 256, 256, heads * actions])
        if algorithm == "iql":
            self._actor.append(torch.zeros(actions))
        self._critics = mlp([observed + actions, 256, 256, 1], copies=2)
        self._value = mlp([observed, 256, 256, 1])
        self._alpha = [torch.zeros(1)]
        self._targets = [weight.clone() for weight in self._critics]
        self._target_actor = [weight.clone() for weight in self._actor]
        for weights in (self._actor, self._critics, self._value, self._alpha):
            for weight in weights:
                weight.requires_grad_(not compiled)
        self._of = {
            name: Adam(getattr(self, f"_{name}"), 3e-4, compiled) for name in ("actor", "critics", "value", "alpha")
        }
        if compiled:
            self._actor, self._critics, self._value, self._alpha = (adam.raw for adam in self._of.values())
        update: Any = {"iql": self._iql, "cql": self._cql, "td3-bc": self._td3_bc}[algorithm]
        self._update = torch.compile(update, fullgraph=True, dynamic=False) if compiled else update

    @torch.no_grad()
    def __call__(self, rows: Tensor, number: int) -> None:
        """Update on rows `[sample, word]`; `number` counts updates."""
        self._update(rows, number % 2 == 0)

    def _parts(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        size = self._observed
        seen, following, action = rows[:, :size], rows[:, size : 2 * size], rows[:, 2 * size : -2]
        return seen, following, action, rows[:, -2:-1], 1 - rows[:, -1:]

    def _iql(self, rows: Tensor, with_actor: bool) -> None:
        seen, following, action, reward, goes_on = self._parts(rows)
        pair = torch.cat([seen, action], -1)
        target = reward + GAMMA * goes_on * forward(self._value, following)
        least = forward(self._targets, pair).amin(0)
        advantage = least - forward(self._value, seen)
        weight = (3.0 * advantage).exp().clamp(max=100.0)

        def of_value(weights: Weights) -> Tensor:
            error = least - forward(weights, seen)
            return (torch.where(error > 0, 0.7, 0.3) * error.square()).mean()

        def of_critics(weights: Weights) -> Tensor:
            return (forward(weights, pair) - target).square().mean(1).sum()

        def of_actor(weights: Weights) -> Tensor:
            log_std = weights[-1].clamp(-5.0, 2.0)
            distance = (action - forward(weights[:-1], seen).tanh()) * (-log_std).exp()
            log_prob = (-0.5 * distance.square() - log_std - _HALF_LOG_TWO_PI).sum(-1, keepdim=True)
            return -(weight * log_prob).mean()

        self._of["critics"].minimise(of_critics)
        self._of["value"].minimise(of_value)
        self._of["actor"].minimise(of_actor)
        self._follow(self._targets, self._of["critics"].raw)

    def _sampled(self, weights: Weights, seen: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = forward(weights, seen).chunk(2, -1)
        log_std = log_std.clamp(-20.0, 2.0)
        noise = torch.randn_like(mean)
        raw = mean + log_std.exp() * noise
        log_prob = -0.5 * noise.square() - log_std - _HALF_LOG_TWO_PI
        log_prob = log_prob - 2 * (math.log(2) - raw - functional.softplus(-2 * raw))
        return raw.tanh(), log_prob.sum(-1, keepdim=True)

    def _cql(self, rows: Tensor, with_actor: bool) -> None:
        seen, following, action, reward, goes_on = self._parts(rows)
        temperature = self._alpha[0].detach().exp()
        future, _ = self._sampled(self._actor, following)
        values = forward(self._targets, torch.cat([following, future], -1)).amin(0)
        target = reward + GAMMA * goes_on * values
        count, size = SAMPLES, len(rows)
        pair, many = torch.cat([seen, action], -1), seen.expand(count, *seen.shape).flatten(0, 1)
        units = [torch.rand(count * size, self._actions) * 2 - 1]
        densities = [torch.full((count * size, 1), -self._actions * math.log(2))]
        for where in (many, following.expand(count, *seen.shape).flatten(0, 1)):
            unit, density = self._sampled(self._actor, where)
            units.append(unit)
            densities.append(density)
        others, density = torch.cat([many.repeat(3, 1), torch.cat(units)], -1), torch.cat(densities)

        def of_critics(weights: Weights) -> Tensor:
            taken = forward(weights, pair)
            spread = (forward(weights, others) - density).view(-1, 3 * count, size).logsumexp(1)
            gap = (spread - taken.squeeze(-1)).mean(1).sum()
            return (taken - target).square().mean(1).sum() + 5.0 * gap

        def of_actor(weights: Weights) -> Tensor:
            own, density = self._sampled(weights, seen)
            return (temperature * density - forward(self._critics, torch.cat([seen, own], -1)).amin(0)).mean()

        _, now = self._sampled(self._actor, seen)
        self._of["actor"].minimise(of_actor)
        self._of["critics"].minimise(of_critics)
        self._of["alpha"].minimise(lambda weights: -(weights[0].exp() * (now - self._actions).mean()).sum())
        self._follow(self._targets, self._of["critics"].raw)

    def _td3_bc(self, rows: Tensor, with_actor: bool) -> None:
        seen, following, action, reward, goes_on = self._parts(rows)
        noise = (0.2 * torch.randn_like(action)).clamp(-0.5, 0.5)
        future = (forward(self._target_actor, following).tanh() + noise).clamp(-1, 1)
        values = forward(self._targets, torch.cat([following, future], -1)).amin(0)
        target, pair = reward + GAMMA * goes_on * values, torch.cat([seen, action], -1)
        self._of["critics"].minimise(lambda weights: (forward(weights, pair) - target).square().mean(1).sum())
        if not with_actor:
            return

        def of_actor(weights: Weights) -> Tensor:
            own = forward(weights, seen).tanh()
            value = forward([weight[0] for weight in self._of["critics"].raw], torch.cat([seen, own], -1))
            weight = 2.5 / value.detach().abs().mean()
            return functional.mse_loss(own, action) - weight * value.mean()

        self._of["actor"].minimise(of_actor)
        self._follow(self._targets, self._of["critics"].raw)
        self._follow(self._target_actor, self._of["actor"].raw)

    @staticmethod
    def _follow(targets: Weights, weights: Weights) -> None:
        torch._foreach_lerp_(targets, weights, TAU)


def updating(algorithm: str, rows: Tensor, observed: int, actions: int, compiled: bool) -> Callable[[int], None]:
    """Return what makes update number n on 256 rows that are drawn."""
    update = Update(algorithm, observed, actions, compiled)

    def once(number: int) -> None:
        update(rows[torch.randint(len(rows), (256,))], number)

    return once
