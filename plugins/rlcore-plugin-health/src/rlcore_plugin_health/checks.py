"""What can be seen to go wrong in a run from the figures that it logs anyway: a function for each, and its words."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

# fractions of the run
_EARLY: Final = 0.25
_WARMED_UP: Final = 0.1
_HALF: Final = 0.5
# of a discrete policy that still tries something, as a fraction of the entropy of the uniform one
_DETERMINED: Final = 0.01
# nats that the entropy of each dimension of a continuous action loses where its standard deviation shrinks to 2 %
_NATS: Final = 4.0
_KL: Final = 1.0
_VANISHED: Final = 1e-8
_EXPLODED: Final = 1000.0
# rows of metrics in succession
_IN_SUCCESSION: Final = 3
_UNEXPLAINED: Final = 10
# explained variance of a critic that knew something once; where a task is solved, nothing is left to be explained
_SOMETHING: Final = 0.1
# rows before anything is compared with what came before, and rows that are kept for it
_FEWEST: Final = 5
_KEPT: Final = 100
# steps of one env without an end of an episode
_LONG: Final = 10_000
# evaluations after the first one
_EVALUATIONS: Final = 3


@dataclass
class Memory:
    """What the checks remember of the rows before; part of checkpoints.

    Attributes:
        first_entropy: of the first row that had one.
        gradients: norms of the latest rows.
        vanished: rows in succession with a gradient of nearly nothing.
        unexplained: rows in succession in which the critic explained nothing.
        most_explained: the largest explained variance so far.
        first_evaluation: mean return of the first evaluation.
        best_since: best mean return of the evaluations after it.
        evaluations: how many there were after it.
        succession: rows in succession of which a check of the loss had a message, by check.
    """

    first_entropy: float | None = None
    gradients: list[float] = field(default_factory=list)
    vanished: int = 0
    unexplained: int = 0
    most_explained: float = 0.0
    first_evaluation: float | None = None
    best_since: float | None = None
    evaluations: int = 0
    succession: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """How a run stands when a row of metrics was written.

    Attributes:
        row: the metrics by name.
        progress: the fraction of the run that is done; 0 in a run without an end.
        frames: collected so far.
        updates: made so far.
        episodes: ended so far.
        steps: of each env so far.
        gamma: the discount; None where no part has one.
        most_reward: the largest absolute reward so far; None where no batch was seen.
        most_value: the largest absolute value that the critic gave the latest batch.
        explained: the fraction of the variance of the returns that the critic explains in the latest batch.
        discrete_entropy: that of the uniform policy, for discrete actions; None for others.
        dimensions: of a continuous action.
        factor: how far values may leave what rewards allow.
    """

    row: Mapping[str, float]
    progress: float
    frames: int
    updates: int
    episodes: int
    steps: int
    gamma: float | None = None
    most_reward: float | None = None
    most_value: float | None = None
    explained: float | None = None
    discrete_entropy: float | None = None
    dimensions: int = 1
    factor: float = 10.0


def values(now: Figures, memory: Memory) -> str | None:
    """Values that no policy could reach with these rewards."""
    seen = [abs(now.row[key]) for key in ("train/q_value", "train/q_value/min", "train/q_value/max") if key in now.row]
    seen += [] if now.most_value is None else [now.most_value]
    if not seen or not now.most_reward or now.gamma is None or now.gamma >= 1:
        return None
    bound = now.most_reward / (1 - now.gamma)
    if max(seen) <= now.factor * bound:
        return None
    return (
        f"values reach {max(seen):.3g}, and no return can be above {bound:.3g}: the largest reward so far is "
        f"{now.most_reward:.3g}, and gamma is {now.gamma:g}. The critic feeds on its own estimates: lower the learning "
        "rate, update the target network less often, or use double = true"
    )


def entropy(now: Figures, memory: Memory) -> str | None:
    """A policy that stops to explore early in the run."""
    value = now.row.get("train/entropy")
    if value is None:
        return None
    first = memory.first_entropy = value if memory.first_entropy is None else memory.first_entropy
    if now.progress > _EARLY:
        return None
    if now.discrete_entropy is not None:
        collapsed = value < _DETERMINED * now.discrete_entropy
        whole = f"{now.discrete_entropy:.3g} at most"
    else:
        collapsed = first - value > _NATS * now.dimensions
        whole = f"{first:.3g} at first"
    if not collapsed:
        return None
    return (
        f"the entropy of the policy is {value:.3g} ({whole}) after {now.progress:.0%} of the run: it hardly explores "
        "any more. Raise entropy_coef, lower the learning rate, or scale the rewards"
    )


def kl(now: Figures, memory: Memory) -> str | None:
    """Updates that take the policy far from the one that collected the batch."""
    value = now.row.get("train/kl_approx")
    if value is None or value <= _KL:
        return None
    return (
        f"the KL divergence of the policy from the one that collected is {value:.3g} on average, and 0.01 to 0.05 is "
        "usual: the updates go too far. Lower the learning rate or the epochs, or give the loss a target_kl"
    )


def gradients(now: Figures, memory: Memory) -> str | None:
    """Gradients of nearly nothing, or far above what they were."""
    value = now.row.get("train/grad_norm")
    if value is None:
        return None
    memory.vanished = memory.vanished + 1 if value < _VANISHED else 0
    usual = statistics.median(memory.gradients) if len(memory.gradients) >= _FEWEST else math.inf
    memory.gradients = [*memory.gradients, value][-_KEPT:]
    if memory.vanished >= _IN_SUCCESSION:
        return (
            f"the norm of the gradients is {value:.1g} in {memory.vanished} rows of metrics in succession: nothing is "
            "learned any more. Look for a saturated activation, a loss that does not depend on the model, or a "
            "learning rate that ended at 0 after weights that are stuck"
        )
    if value > _EXPLODED * max(usual, _VANISHED):
        return (
            f"the norm of the gradients is {value:.3g}, and was {usual:.3g} before: it explodes. Set [learner] "
            "max_grad_norm, lower the learning rate, or normalise rewards and observations"
        )
    return None


def critic(now: Figures, memory: Memory) -> str | None:
    """A critic that never knew more of the returns than their mean."""
    if now.explained is None:
        return None
    memory.most_explained = max(memory.most_explained, now.explained)
    if now.progress < _WARMED_UP:
        return None
    memory.unexplained = memory.unexplained + 1 if now.explained <= 0 else 0
    if memory.unexplained < _UNEXPLAINED or memory.most_explained > _SOMETHING:
        return None
    return (
        f"the critic explains nothing of the returns: its explained variance is {now.explained:.2f}, and was not above "
        f"0 in {memory.unexplained} rows of metrics in succession. Raise critic_coef or the learning rate, normalise "
        "observations, or look whether the observation says what the return depends on"
    )


def episodes(now: Figures, memory: Memory) -> str | None:
    """Environments that end no episode."""
    if now.episodes or now.steps < _LONG or now.progress < _EARLY:
        return None
    return (
        f"no episode ended in {now.steps:,} steps of each env: there are no returns to log, and a policy that is stuck "
        "stays so. Give the env a time limit, unless it is meant to go on for ever"
    )


def rewards(now: Figures, memory: Memory) -> str | None:
    """Rewards that are all 0."""
    if now.most_reward != 0 or now.progress < _EARLY:
        return None
    return (
        f"every reward of the first {now.frames:,} frames was 0, so there is nothing to learn from. Explore more, "
        "shape the reward, or look whether a transform or hook takes it away"
    )


def updates(now: Figures, memory: Memory) -> str | None:
    """A run that updates nothing."""
    if now.updates or now.progress < _HALF:
        return None
    return (
        f"no update was made in the first {now.frames:,} frames, half of the run: is [buffer] warmup_frames too large "
        "for it?"
    )


def learning(now: Figures, memory: Memory) -> str | None:
    """Evaluations that never became better than the first one."""
    first, best = memory.first_evaluation, memory.best_since
    if first is None or best is None or memory.evaluations < _EVALUATIONS or now.progress < _HALF or best > first:
        return None
    return (
        f"nothing was learned in {now.progress:.0%} of the run: the best evaluation since the first one ({first:.4g}) "
        f"is {best:.4g}. Look at the entropy or epsilon, the learning rate, and whether rewards say what is wanted"
    )


# by the name that a config uses to leave one out
CHECKS: Final[Mapping[str, Callable[[Figures, Memory], str | None]]] = MappingProxyType(
    {check.__name__: check for check in (values, entropy, kl, gradients, critic, episodes, rewards, updates, learning)}
)


def state_of(memory: Memory) -> dict[str, Any]:
    """Return a memory as a checkpoint carries it."""
    return {**vars(memory), "gradients": list(memory.gradients), "succession": dict(memory.succession)}
