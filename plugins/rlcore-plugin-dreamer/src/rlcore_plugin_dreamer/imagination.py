"""Rollouts in the world model: of its actor, and of an episode that was played."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
from torch import Tensor

from rlcore_plugin_dreamer.categorical import sample
from rlcore_plugin_dreamer.rssm import RSSM, Arranged, Latent

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


# takes what `imagine_step` takes, and returns what it returns
ImagineStep: TypeAlias = Callable[..., tuple[Tensor, Tensor, Tensor]]


def imagine_step(
    model: DreamerModel, arranged: Arranged, deter: Tensor, stoch: Tensor, uniform: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the deterministic states and latents that follow from actions of the actor, and these actions, encoded.

    Args:
        model: has the actor.
        arranged: weights of its recurrent model.
        deter: deterministic states.
        stoch: latents.
        uniform: numbers in [0, 1), `[row, latent]`.
        noise: of the actions, `[row, noise of an action]`.
    """
    rssm = model.rssm
    action = model.actions.sample(model.actor(Latent(deter, stoch).features()), noise)
    deter = rssm.transition(arranged, deter, stoch, rssm.encoded_action(action))
    index = sample(rssm.prior(deter).exp(), uniform)
    return *rssm.latent(deter, index), action


def imagine(
    model: DreamerModel, start: Latent, uniform: Tensor, noise: Tensor, step: ImagineStep = imagine_step
) -> Imagined:
    """Return rollouts from states.

    Args:
        model: has the actor, and predicts what its actions lead to.
        start: the states, `[row, ...]`, without gradient.
        uniform: numbers in [0, 1) for latents, `[step, row, latent]`.
        noise: of the actions, `[step, row, noise of an action]`.
        step: what `imagine_step` computes.
    """
    features, encoded = [start.features()], []
    with torch.no_grad():
        arranged, (deter, stoch) = model.rssm.arranged(), start
        for noises in zip(uniform, noise, strict=True):
            deter, stoch, action = step(model, arranged, deter, stoch, *noises)
            encoded.append(action)
            features.append(Latent(deter, stoch).features())
        every = torch.stack(features)
    return Imagined(every, torch.stack(encoded), model.actor(every[:-1]))


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
    arranged = rssm.arranged()
    prepared, from_action = rssm.prepared(arranged, tokens).unsqueeze(1), rssm.encoded_action(action).unsqueeze(1)
    latent, states = rssm.initial(1), []
    for time, is_shown in enumerate(shown.tolist()):
        deter = rssm.transition(arranged, *latent, from_action[time])
        log_probs = rssm.posterior(arranged, deter, prepared[time]) if is_shown else rssm.prior(deter)
        index = sample(log_probs.exp(), uniform[time].unsqueeze(0))
        latent = rssm.latent(deter, index)
        states.append(latent)
    return Latent(*(torch.cat(parts) for parts in zip(*states, strict=True)))
