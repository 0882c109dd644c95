"""The policy: infers the state of the world from what it sees, and samples an action from the actor."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from rlcore.types import Key
from rlcore_plugin_dreamer.actions import Actions
from rlcore_plugin_dreamer.categorical import sample
from rlcore_plugin_dreamer.rssm import RSSM, Arranged, Latent


class CarriedState:
    """How a state of the world and the last action lie in the one tensor that is carried, `[row, size]`.

    A latent is the number of its class plus 1, and 0 for none, so that the state before an episode is zeros alone.

    Args:
        rssm: whose states these are.
        actions: how many numbers an encoded action is.
    """

    def __init__(self, rssm: RSSM, actions: int) -> None:
        self._sizes = [rssm.deter, rssm.latents, actions]
        self._rssm = rssm
        self.size = sum(self._sizes)

    def packed(self, deter: Tensor, index: Tensor, action: Tensor) -> Tensor:
        """Return the tensor of deterministic states, classes `[row, latent]` and encoded actions."""
        return torch.cat([deter, (index + 1).to(deter.dtype), action.to(deter.dtype)], -1)

    def unpacked(self, state: Tensor) -> tuple[Latent, Tensor]:
        """Return states of the world, and encoded actions."""
        deter, numbers, action = torch.split(state, self._sizes, -1)
        return self._rssm.latent(deter, numbers.long() - 1), action


class DreamerPolicy:
    """Samples latents and actions during collection; an evaluation takes the likeliest of both.

    Args:
        encoder: of observations.
        rssm: the recurrent model.
        actor: features of a state to the parameters of a distribution over actions.
        actions: that distribution.
    """

    writes: tuple[Key, ...] = ()

    def __init__(self, encoder: nn.Module, rssm: RSSM, actor: nn.Module, actions: Actions) -> None:
        self._encoder, self._rssm, self._actor = encoder, rssm, actor
        self._actions = actions
        self._carried = CarriedState(rssm, actions.inputs)
        # not before `refresh`: a weight with views cannot be moved to another device
        self._arranged: Arranged | None = None

    def initial_state(self, num_envs: int) -> Tensor:
        """Return the state with which episodes begin: zeros."""
        return self._rssm.initial(num_envs).deter.new_zeros(num_envs, self._carried.size)

    def refresh(self) -> None:
        """Follow the weights, also after they were moved or replaced."""
        with torch.no_grad():
            self._arranged = self._rssm.arranged()

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the randomness of a batch `[time, env, latents + noise of an action]`."""
        shape = (steps, num_envs)
        uniform = torch.rand(*shape, self._rssm.latents, generator=generator, device=generator.device)
        return torch.cat([uniform, self._actions.noise(shape, generator)], -1)

    def act(self, observation: Tensor, noise: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions, the parameters of their distribution, and the next state."""
        uniform, of_action = torch.split(noise, [self._rssm.latents, self._actions.noise_size], -1)
        deter, log_probs = self._observed(observation, state, first)
        index = sample(log_probs.exp(), uniform)
        outputs = self._outputs(deter, index)
        encoded = self._actions.sample(outputs, of_action)
        return self._actions.to_env(encoded), outputs, self._carried.packed(deter, index, encoded)

    def mode(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the likeliest actions for the likeliest latents, and the next state."""
        deter, log_probs = self._observed(observation, state, first)
        index = log_probs.argmax(-1)
        encoded = self._actions.mode(self._outputs(deter, index))
        return self._actions.to_env(encoded), self._carried.packed(deter, index, encoded)

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing: the loss needs the transition alone."""
        return {}

    def _observed(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return deterministic states, and log-probabilities `[env, latent, class]` of the latents."""
        latent, action = self._carried.unpacked(torch.where(first.unsqueeze(-1), 0, state))
        rssm, arranged = self._rssm, self._arranged or self._rssm.arranged()
        deter = rssm.transition(arranged, *latent, rssm.encoded_action(action))
        return deter, rssm.posterior(arranged, deter, rssm.prepared(arranged, self._encoder(observation)))

    def _outputs(self, deter: Tensor, index: Tensor) -> Tensor:
        """Return the parameters of the distribution over actions, `[env, outputs]`."""
        outputs: Tensor = self._actor(self._rssm.latent(deter, index).features())
        return outputs
