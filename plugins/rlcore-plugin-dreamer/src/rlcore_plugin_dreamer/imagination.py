"""Rollouts in the world model: of its actor, and of an episode that was played."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
from torch import Tensor

from rlcore_plugin_dreamer.bins import expectation
from rlcore_plugin_dreamer.categorical import sample
from rlcore_plugin_dreamer.rssm import RSSM, Arranged, Latent

if TYPE_CHECKING:
    from rlcore_plugin_dreamer.model import DreamerModel


class Imagined(NamedTuple):
    """Imagined steps, without gradient.

    Attributes:
        features: of the states, the first of which are the given ones, `[step + 1, row, feature]`.
        action: encoded, in all but the last, `[step, row, action]`.
        reward: that each state comes with, `[step + 1, row]`.
        going: the discount where an episode goes on after it, likewise.
        slow: values by the slow critic, likewise.
    """

    features: Tensor
    action: Tensor
    reward: Tensor
    going: Tensor
    slow: Tensor


# takes what `imagine_step` takes, and returns what it returns; likewise `predict`
ImagineStep: TypeAlias = Callable[..., tuple[Tensor, Tensor, Tensor]]
Predict: TypeAlias = Callable[..., tuple[Tensor, Tensor, Tensor]]


def imagine_step(
    model: DreamerModel, arranged: Arranged, features: Tensor, uniform: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the deterministic states and latents that follow from actions of the actor, and these actions, encoded.

    Args:
        model: has the actor.
        arranged: weights of its recurrent model.
        features: of the states, `[row, feature]`.
        uniform: numbers in [0, 1), `[row, latent]`.
        noise: of the actions, `[row, noise of an action]`.
    """
    rssm = model.rssm
    action = model.actions.sample(model.actor(features), noise)
    deter, stoch = torch.split(features, [rssm.deter, rssm.stoch], -1)
    deter = rssm.transition(arranged, deter, stoch, rssm.encoded_action(action))
    return deter, rssm.predicted(deter, uniform), action


def predict(model: DreamerModel, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return rewards, discounts and values of the slow critic, `[row]`, of states `[row, feature]`."""
    reward, slow = (expectation(head(features), model.bins) for head in (model.reward, model.target_critic))
    return reward, model.continuation(features).squeeze(-1).sigmoid(), slow


def imagine(
    model: DreamerModel,
    start: Latent,
    uniform: Tensor,
    noise: Tensor,
    step: ImagineStep = imagine_step,
    predict: Predict = predict,
) -> Imagined:
    """Return rollouts from states.

    Args:
        model: has the actor, and predicts what its actions lead to.
        start: the states, `[row, ...]`, without gradient.
        uniform: numbers in [0, 1) for latents, `[step, row, latent]`.
        noise: of the actions, `[step, row, noise of an action]`.
        step: what `imagine_step` computes.
        predict: what `predict` computes.
    """
    first, encoded = start.features(), []
    with torch.no_grad():
        arranged, features = model.rssm.arranged(), first.new_empty(len(noise) + 1, *first.shape)
        features[0] = first
        # step by step: the features of one step stay in the cache, and those of all would be read for each head
        predictions = [predict(model, features[0])]
        for time, noises in enumerate(zip(uniform, noise, strict=True)):
            deter, stoch, action = step(model, arranged, features[time], *noises)
            torch.cat([deter, stoch], -1, out=features[time + 1])
            predictions.append(predict(model, features[time + 1]))
            encoded.append(action)
        reward, going, slow = map(torch.stack, zip(*predictions, strict=True))
    return Imagined(features, torch.stack(encoded), reward, going, slow)


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
