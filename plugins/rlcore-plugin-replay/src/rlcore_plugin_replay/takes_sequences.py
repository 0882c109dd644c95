"""Whether a loss learns from sequences or from single steps, and so which buffer goes with it."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import offers
from rlcore_plugin_replay.streams import Cut


class TakesSequences(Protocol):
    """A loss of sequences, `[time, sequence, ...]`, that leaves out what is masked.

    Attributes:
        burn_in: rows at the beginning of each sequence that only lead to the state of the policy; a buffer sets it.
    """

    burn_in: int


class TakesJoinedSteps(Protocol):
    """A loss of sequences to which it matters how many steps are joined.

    Attributes:
        n_steps: how many rewards are summed at most; a buffer sets it.
    """

    n_steps: int


class InfersStates(Protocol):
    """A loss of sequences that infers the states of the policy again, for the buffer to store in place of old ones.

    Attributes:
        stride: rows from the beginning of a sequence to that of the next one in its episode; a buffer sets it.
        inferred_states: before the row `stride` of the latest minibatch, `[sequence, *state]`; None for none.
    """

    stride: int
    inferred_states: Tensor | None


def take_sequences(loss: object, cut: Cut) -> InfersStates | None:
    """Tell a loss of sequences how episodes are cut into them, and refuse one of single steps.

    Returns:
        The loss, where it infers states.

    Raises:
        ConfigError: it would train on padding, or takes no such sequences.
    """
    if loss is None:
        return None
    if not offers(loss, TakesSequences):
        raise ConfigError(
            "[buffer] use: replay:sequences samples sequences, and this loss takes single steps; take the loss r2d2 "
            "of rlcore-plugin-dqn with it, or for sac, td3 and ddpg the model sac:recurrent-actor-critic; or the "
            "buffer 'replay' or 'replay:prioritized'"
        )
    loss.burn_in = cut.burn_in
    if offers(loss, TakesJoinedSteps):
        loss.n_steps = cut.n_steps
    if not offers(loss, InfersStates):
        return None
    loss.stride = cut.stride
    return loss


def take_steps(loss: object) -> None:
    """Refuse a loss of sequences.

    Raises:
        ConfigError: it would look for states and for rows that follow each other.
    """
    if loss is not None and offers(loss, TakesSequences):
        raise ConfigError(
            f"[buffer] use: this buffer samples single steps, and the loss {type(loss).__name__} takes sequences; "
            'set use = "replay:sequences"'
        )
