"""What a planner is, and MPPI over a world model: candidate sequences of actions, of which the best are averaged."""

from __future__ import annotations

import math
from typing import Final, NamedTuple, Protocol

import torch
from pydantic import BaseModel, Field
from torch import Tensor

# actions from which on there are more iterations unless the config says how many
_MANY_ACTIONS: Final = 20


class Imagines(Protocol):
    """A world model as a planner asks it; every method takes any leading shape `[...]`."""

    def act(self, latent: Tensor, noise: Tensor) -> Tensor:
        """Return likely actions `[..., action]` in [-1, 1], picked by standard normal noise of the same shape."""
        ...

    def step(self, latent: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next latents `[..., latent]`, and the rewards `[..., 1]`."""
        ...

    def value(self, latent: Tensor, action: Tensor, members: Tensor) -> Tensor:
        """Return the mean value `[env, sample]` of critics, int64 `[env, member]`, for `[env, sample, ...]`."""
        ...


class Planner(Protocol):
    """Chooses actions by what a world model says would follow; keeps nothing between two calls.

    One that searches a tree has the same methods: its state is what it keeps of the tree, flattened, or nothing.

    Attributes:
        state_size: numbers that go from one step of an env to its next, zeros where an episode begins.
        noise_size: standard normal numbers that a step of an env takes.
    """

    state_size: int
    noise_size: int

    def plan(self, world: Imagines, latent: Tensor, state: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return what to do, each env for itself.

        Args:
            world: the model.
            latent: `[env, latent]`.
            state: `[env, state_size]`, what the call before returned.
            noise: `[env, noise_size]`; the same arguments give the same results.

        Returns:
            An action that explores `[env, action]`, the best one, both in [-1, 1], and the next state.
        """
        ...


class PlannerConfig(BaseModel, extra="forbid"):
    """The budget of MPPI."""

    horizon: int = Field(3, ge=1, description="steps of a plan")
    samples: int = Field(512, ge=2, description="candidate plans per iteration, with those of the prior")
    prior_samples: int = Field(24, ge=0, description="candidates that the prior acts out")
    iterations: int | None = Field(None, ge=1, description="rounds of a step; default: 6, or 8 for 20 actions and more")
    elites: int = Field(64, ge=1, description="best candidates, of which the next round's distribution is made")
    temperature: float = Field(0.5, ge=0, allow_inf_nan=False, description="how much better elites count for more")
    std_min: float = Field(0.05, gt=0, description="least standard deviation of candidates")
    std_max: float = Field(2.0, gt=0, allow_inf_nan=False, description="largest one, with which a step begins")


class _Noise(NamedTuple):
    """The noise of a step, by its use.

    Attributes:
        prior: of the prior's plans, `[env, horizon, prior sample, action]`.
        candidates: of the others, `[iteration, env, horizon, sample, action]`.
        last: of the prior's actions behind the horizon, `[iteration, env, sample, action]`.
        critics: whose order picks critics, `[iteration, env, critic]`.
        choice: among the elites, `[env, elite]`.
        exploration: of the action, `[env, action]`.
    """

    prior: Tensor
    candidates: Tensor
    last: Tensor
    critics: Tensor
    choice: Tensor
    exploration: Tensor


class MPPI:
    """Model predictive path integral control (Williams et al., 2015), as TD-MPC2 has it.

    Args:
        config: the budget.
        actions: how many.
        critics: of the world model, two of which value the end of a plan.
        gamma: discount.

    Attributes:
        state_size: numbers of a plan.
        noise_size: numbers that a step takes.
    """

    def __init__(self, config: PlannerConfig, actions: int, critics: int, gamma: float) -> None:
        self._config = config
        self._actions, self._critics, self._gamma = actions, critics, gamma
        self._iterations = config.iterations or (8 if actions >= _MANY_ACTIONS else 6)
        self.state_size = config.horizon * actions
        self._sizes = [math.prod(shape) for shape in self._shapes()]
        self.noise_size = sum(self._sizes)

    def plan(self, world: Imagines, latent: Tensor, state: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return an action that explores, the best one, and the plan that goes on; see `Planner`."""
        config, parts = self._config, self._parts(noise)
        plan = state.view(-1, config.horizon, self._actions)
        mean = torch.cat([plan[:, 1:], torch.zeros_like(plan[:, :1])], 1)
        std = torch.full_like(mean, config.std_max)
        latent = latent.unsqueeze(1)
        of_prior = self._acted_out(world, latent, parts.prior)
        for candidates, last, critics in zip(parts.candidates, parts.last, parts.critics, strict=True):
            sampled = torch.addcmul(mean.unsqueeze(2), std.unsqueeze(2), candidates).clamp(-1, 1)
            actions = torch.cat([of_prior, sampled], 2)
            values = self._values(world, latent, actions, last, critics)
            elite_values, places = values.topk(config.elites, 1)
            elites = actions.gather(2, places[:, None, :, None].expand(-1, config.horizon, -1, self._actions))
            weight = (config.temperature * (elite_values - elite_values[:, :1])).softmax(1)
            mean = _weighted_mean(weight, elites)
            std = _weighted_mean(weight, (elites - mean.unsqueeze(2)).square()).sqrt()
            std = std.clamp(config.std_min, config.std_max)
        # the largest of log-probabilities with Gumbel noise is a sample; standard normal numbers become such noise
        uniform = torch.special.ndtr(parts.choice).clamp(1e-7, 1 - 1e-7)
        chosen = (weight.log() - (-uniform.log()).log()).argmax(1)
        first_actions = elites[:, 0]
        action = first_actions.gather(1, chosen[:, None, None].expand(-1, 1, self._actions)).squeeze(1)
        explored = torch.addcmul(action, std[:, 0], parts.exploration).clamp(-1, 1)
        return explored, mean[:, 0].clamp(-1, 1), mean.flatten(1)

    def _shapes(self) -> list[tuple[int, ...]]:
        """Return the shape of each kind of noise, of one env; those of `_Noise` without `env`."""
        config, actions = self._config, self._actions
        others = config.samples - config.prior_samples
        return [
            (config.horizon, config.prior_samples, actions),
            (self._iterations, config.horizon, others, actions),
            (self._iterations, config.samples, actions),
            (self._iterations, self._critics),
            (config.elites,),
            (actions,),
        ]

    def _parts(self, noise: Tensor) -> _Noise:
        pieces = torch.split(noise, self._sizes, -1)
        shaped = [piece.view(noise.shape[0], *shape) for piece, shape in zip(pieces, self._shapes(), strict=True)]
        for number in (1, 2, 3):
            shaped[number] = shaped[number].transpose(0, 1)
        return _Noise(*shaped)

    def _acted_out(self, world: Imagines, latent: Tensor, noise: Tensor) -> Tensor:
        """Return the prior's plans, `[env, horizon, prior sample, action]`."""
        if not self._config.prior_samples:
            return noise
        latent = latent.expand(-1, self._config.prior_samples, -1)
        actions: list[Tensor] = []
        for own in noise.unbind(1):
            if actions:
                latent, _ = world.step(latent, actions[-1])
            actions.append(world.act(latent, own))
        return torch.stack(actions, 1)

    def _values(self, world: Imagines, latent: Tensor, actions: Tensor, last: Tensor, critics: Tensor) -> Tensor:
        """Return what plans are worth, `[env, sample]`: discounted rewards, and the value of what follows.

        Args:
            world: the model.
            latent: `[env, 1, latent]`.
            actions: `[env, horizon, sample, action]`.
            last: noise of the action behind the horizon, `[env, sample, action]`.
            critics: noise, whose order picks two critics, `[env, critic]`.
        """
        total: Tensor | None = None
        discount = 1.0
        for action in actions.unbind(1):
            latent, reward = world.step(latent, action)
            total = reward if total is None else total + discount * reward
            discount *= self._gamma
        assert total is not None
        members = critics.topk(min(2, self._critics), 1).indices
        value = world.value(latent, world.act(latent, last), members)
        return torch.add(total.squeeze(-1), value, alpha=discount).nan_to_num(0)


def _weighted_mean(weight: Tensor, values: Tensor) -> Tensor:
    """Return the mean `[env, horizon, action]` of values `[env, horizon, elite, action]`, by `[env, elite]`."""
    return (weight[:, None, :, None] * values).sum(2)
