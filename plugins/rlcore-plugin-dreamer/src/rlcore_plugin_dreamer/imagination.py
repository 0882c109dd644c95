"""Rollouts in the world model: of its actor, and of an episode that was played."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from rlcore_plugin_dreamer.categorical import one_hot, sample
from rlcore_plugin_dreamer.rssm import RSSM, Latent

if TYPE_CHECKING:
    from rlcore_plugin_dreamer.model import DreamerModel


class Imagined(NamedTuple):
    """Imagined steps; what the actor returns has a gradient for its weights, and nothing else has one.

    Attributes:
        features: of the states, the first of which are the given ones, `[step + 1, row, feature]`.
        action: encoded, in all but the last, `[step, row, action]`.
        outputs: of the actor, parameters of the distributions of these actions, `[step, row, output]`.
    """

    features: Tensor
    action: Tensor
    outputs: Tensor


def imagine(model: DreamerModel, start: Latent, uniform: Tensor, noise: Tensor) -> Imagined:
    """Return rollouts from states.

    Args:
        model: has the actor, and predicts what its actions lead to.
        start: the states, `[row, ...]`, without gradient.
        uniform: numbers in [0, 1) for latents, `[step, row, latent]`.
        noise: of the actions, `[step, row, noise of an action]`.
    """
    rssm, actions = model.rssm, model.actions
    features, encoded, outputs = [start.features()], [], []
    with torch.no_grad():
        step, latent = rssm.transition(), start
    for of_latents, of_action in zip(uniform, noise, strict=True):
        outputs.append(model.actor(features[-1]))
        with torch.no_grad():
            encoded.append(actions.sample(outputs[-1], of_action))
            deter = step(*latent, rssm.encoded_action(encoded[-1]))
            index = sample(rssm.prior(deter).exp(), of_latents)
            latent = Latent(deter, one_hot(index, rssm.classes).to(deter.dtype).flatten(-2))
            features.append(latent.features())
    return Imagined(torch.stack(features), torch.stack(encoded), torch.stack(outputs))


@torch.no_grad()
def follow(rssm: RSSM, tokens: Tensor, action: Tensor, shown: Tensor, uniform: Tensor) -> Latent:
    """Return the states of an episode `[time, ...]`, inferred where its observation is shown, and predicted elsewhere.

    Args:
        rssm: the recurrent model.
        tokens: encoded observations, `[time, token]`.
        action: encoded, that led to each, `[time, action]`; 0 at the first.
        shown: bool `[time]`.
        uniform: numbers in [0, 1), `[time, latent]`.
    """
    step, (prepare, posterior) = rssm.transition(), rssm.posterior()
    from_tokens, from_action = prepare(tokens).unsqueeze(1), rssm.encoded_action(action).unsqueeze(1)
    latent, states = rssm.initial(1), []
    for time, is_shown in enumerate(shown.tolist()):
        deter = step(*latent, from_action[time])
        log_probs = posterior(deter, from_tokens[time]) if is_shown else rssm.prior(deter)
        index = sample(log_probs.exp(), uniform[time].unsqueeze(0))
        latent = Latent(deter, one_hot(index, rssm.classes).to(deter.dtype).flatten(-2))
        states.append(latent)
    return Latent(*(torch.cat(parts) for parts in zip(*states, strict=True)))
