"""Rollouts in the world model: of its actor, and of an episode that was played."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
from torch import Tensor

from rlcore_plugin_dreamer.bins import expectation
from rlcore_plugin_dreamer.categorical import sample
from rlcore_plugin_dreamer.layers import outputs_of
from rlcore_plugin_dreamer.rssm import RSSM, Arranged, Latent

if TYPE_CHECKING:
    from rlcore_plugin_dreamer.model import DreamerModel


class Predicted(NamedTuple):
    """What heads say of states, `[row, ...]`; those that learn from it have a gradient.

    Attributes:
        reward: that a state comes with, `[row]`.
        going: the discount where an episode goes on after it, `[row]`.
        value: of the state, `[row]`.
        slow: the same by the slow critic, `[row]`.
        critic: log-probabilities of the value, `[row, bin]`.
        actor: parameters of the distribution over actions, `[row, parameter]`.
    """

    reward: Tensor
    going: Tensor
    value: Tensor
    slow: Tensor
    critic: Tensor
    actor: Tensor


class Imagined(NamedTuple):
    """Imagined steps.

    Attributes:
        predicted: of the states, the first of which are the given ones, `[step + 1, row, ...]`.
        action: encoded, in all but the last, `[step, row, action]`.
    """

    predicted: Predicted
    action: Tensor


# takes what `imagine_step` takes, and returns what it returns; likewise `predict`
ImagineStep: TypeAlias = Callable[..., tuple[Tensor, Tensor]]
Predict: TypeAlias = Callable[..., Predicted]


@torch.no_grad()
def imagine_step(
    model: DreamerModel, arranged: Arranged, features: Tensor, parameters: Tensor, uniform: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the features of the states that follow from actions of the actor, and these actions, encoded.

    Args:
        model: predicts what follows.
        arranged: weights of its recurrent model.
        features: of the states, `[row, feature]`.
        parameters: of the distribution over their actions, `[row, parameter]`.
        uniform: numbers in [0, 1), `[row, latent]`.
        noise: of the actions, `[row, noise of an action]`.
    """
    rssm = model.rssm
    action = model.actions.sample(parameters, noise)
    deter, stoch = torch.split(features, [rssm.deter, rssm.stoch], -1)
    deter = rssm.transition(arranged, deter, stoch, rssm.encoded_action(action))
    return torch.cat([deter, rssm.predicted(deter, uniform)], -1), action


def predict(model: DreamerModel, features: Tensor) -> Predicted:
    """Return what heads say of states `[row, feature]`; actor and critic, which learn from it, with a gradient."""
    critic, actor = model.critic(features), model.actor(features)
    with torch.no_grad():
        reward, going, slow = outputs_of([model.reward, model.continuation, model.target_critic], features)
        reward, value, slow = (expectation(logits, model.bins) for logits in (reward, critic, slow))
        going = going.squeeze(-1).sigmoid()
    return Predicted(reward, going, value, slow, critic.log_softmax(-1), actor)


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
    with torch.no_grad():
        arranged = model.rssm.arranged()
    features, actions = start.features(), []
    # step by step: the features of one step stay in the cache, and those of all would be read for each head
    predictions = [predict(model, features)]
    for noises in zip(uniform, noise, strict=True):
        features, action = step(model, arranged, features, predictions[-1].actor.detach(), *noises)
        predictions.append(predict(model, features))
        actions.append(action)
    return Imagined(Predicted(*map(torch.stack, zip(*predictions, strict=True))), torch.stack(actions))


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
