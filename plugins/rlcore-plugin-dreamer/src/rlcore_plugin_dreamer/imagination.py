"""Rollouts of the actor in the world model."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from rlcore_plugin_dreamer.categorical import one_hot, sample
from rlcore_plugin_dreamer.rssm import Latent

if TYPE_CHECKING:
    from rlcore_plugin_dreamer.model import DreamerModel


class Imagined(NamedTuple):
    """Imagined steps, without gradients.

    Attributes:
        features: of the states, the first of which are the given ones, `[step + 1, row, feature]`.
        action: encoded, in each of them, `[step + 1, row, action]`.
    """

    features: Tensor
    action: Tensor


@torch.no_grad()
def imagine(model: DreamerModel, start: Latent, uniform: Tensor, noise: Tensor) -> Imagined:
    """Return rollouts from states.

    Args:
        model: has the actor, and predicts what its actions lead to.
        start: the states, `[row, ...]`.
        uniform: numbers in [0, 1) for latents, `[step, row, latent]`.
        noise: of the actions, `[step + 1, row, noise of an action]`.
    """
    rssm, actions = model.rssm, model.actions
    step = rssm.transition()
    latent, features, taken = start, [], []
    for time in range(noise.shape[0]):
        features.append(latent.features())
        encoded = actions.sample(model.actor(features[-1]), noise[time])
        taken.append(encoded)
        if time < uniform.shape[0]:
            deter = step(*latent, rssm.encoded_action(encoded))
            index = sample(rssm.prior(deter).exp(), uniform[time])
            latent = Latent(deter, one_hot(index, rssm.classes).to(deter.dtype).flatten(-2))
    return Imagined(torch.stack(features), torch.stack(taken))
