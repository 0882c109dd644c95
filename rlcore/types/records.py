"""The records that components hand to each other: what an env is, what a step, an episode or an evaluation gave.

Batches are described in the room's `__init__.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import gymnasium
    import numpy as np
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]
    BoolArray: TypeAlias = npt.NDArray[np.bool_]

Key: TypeAlias = str | tuple[str, ...]
State: TypeAlias = dict[str, Any]

# false for a step of a batch that only resets its env, which nobody counts or trains on; only where there are such
MASK: Final[Key] = ("collector", "mask")
# the entries of a batch that every collector writes, and those that every estimator adds
COLLECTED: Final[tuple[Key, ...]] = (
    "observation",
    "action",
    *(("next", name) for name in ("observation", "reward", "done", "terminated", "truncated")),
)
ESTIMATED: Final[tuple[Key, ...]] = ("state_value", "advantage", "value_target")
# the entries of a batch that a policy with a state adds: its state before each step, not yet put back at the beginning
# of an episode, `[env, time, *state]`; whether the observation is the first of an episode, `[env, time, 1]`; the state
# after the step, with which the next observation has its value, `[env, time, *state]`
POLICY_STATE: Final[Key] = "policy_state"
FIRST: Final[Key] = "first"
NEXT_POLICY_STATE: Final[Key] = ("next", "policy_state")
REMEMBERED: Final[tuple[Key, ...]] = (POLICY_STATE, FIRST, NEXT_POLICY_STATE)


class AgentSpec(NamedTuple):
    """One agent of a game that several play.

    Attributes:
        name: as the game calls it, such as `adversary_0`.
        observation_space: of its observations.
        action_space: of its actions.
    """

    name: str
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]


@dataclass(frozen=True)
class EnvSpec:
    """What the parts of a run need to know of a vector env.

    Attributes:
        id: name of the environment, for messages.
        observation_space: of one env, as the policy sees it (after the transforms).
        action_space: of one env.
        num_envs: how many envs step together.
        frame_skip: frames that one step counts.
        reset_mode: `same_step` when `step` returns the first observation of the next episode at once and hands the
            last one over as `final_observation`; `next_step` when it returns the last observation, and the following
            step only resets (that step is masked).
        max_episode_steps: steps after which an episode is truncated, when known.
        waits: with `next_step`, whether an env whose episode ended may wait for others, as an agent does that is out of
            its game. All of its steps until the next episode are ends too, with a reward of 0, and none of them counts.
        agents: of a game that several play, in the order of their envs: env `i` is agent `i % len(agents)`, so that
            `num_envs` is a multiple of it. Where their spaces differ, those above are wide enough for each, as
            the env library makes them. Empty for other envs.
    """

    id: str
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    num_envs: int
    frame_skip: int = 1
    reset_mode: Literal["same_step", "next_step"] = "same_step"
    max_episode_steps: int | None = None
    waits: bool = False
    agents: tuple[AgentSpec, ...] = ()


class Step(NamedTuple):
    """What a vector env returns from one step. The arrays may be reused by the next call.

    Attributes:
        observation: `[env, *shape]`.
        reward: `[env]`, float.
        terminated: `[env]`, bool: the episode reached an end of its own; its value there is zero.
        truncated: `[env]`, bool: the episode was cut off; the value there is bootstrapped.
        final_observation: env index to the last observation of the episode that ended in this step
            (`same_step` envs only, empty otherwise).
        infos: env index to the info mapping of the episode that ended in this step.
    """

    observation: Array
    reward: Array
    terminated: BoolArray
    truncated: BoolArray
    final_observation: Mapping[int, Array]
    infos: Mapping[int, Mapping[str, Any]]


class Episode(NamedTuple):
    """One finished episode.

    Attributes:
        return_: sum of the rewards of the env, without discount.
        length: steps.
        env_index: which env of the vector.
        infos: the info mapping of its last step.
    """

    return_: float
    length: int
    env_index: int
    infos: Mapping[str, Any]


@dataclass(frozen=True)
class EvaluationResult:
    """Complete episodes of the deterministic policy on fixed seeds.

    Attributes:
        frames: training frames when it was made; of a run with `total_updates`, its updates.
        seeds: one reset seed per episode.
        returns: undiscounted return per episode.
        lengths: steps per episode.
        policies: the name of the policy that acted in each episode, where a run has several; else empty.
    """

    frames: int
    seeds: tuple[int, ...]
    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    policies: tuple[str, ...] = ()

    @property
    def mean_return(self) -> float:
        """Mean over the episodes."""
        return sum(self.returns) / len(self.returns)

    def returns_array(self) -> Array:
        """Return the returns as an array `[episode]`."""
        import numpy as np

        return np.asarray(self.returns, dtype=np.float64)

    def lengths_array(self) -> Array:
        """Return the lengths as an array `[episode]`."""
        import numpy as np

        return np.asarray(self.lengths, dtype=np.float64)

    def returns_by_policy(self) -> dict[str, list[float]]:
        """Return the returns of each policy's episodes by its name; empty where a run has one policy."""
        by_policy: dict[str, list[float]] = {name: [] for name in self.policies}
        for name, return_ in zip(self.policies, self.returns, strict=False):
            by_policy[name].append(return_)
        return by_policy

    @property
    def mean_length(self) -> float:
        """Mean number of steps of an episode."""
        return sum(self.lengths) / len(self.lengths)


@dataclass(frozen=True)
class RunInfo:
    """Identity of a run.

    Attributes:
        name: name of the run and of its folder.
        seed: the one seed from which every generator is derived.
        folder: where everything is written; None for a run that writes nothing.
        total_updates: the horizon in updates, of a run whose length is counted in them.
        total_frames: the horizon of the schedules; `ENDLESS` where `total_updates` is given.
    """

    name: str
    seed: int
    total_frames: int
    folder: Path | None = None
    resolved_config: Mapping[str, Any] = field(default_factory=dict)
    total_updates: int | None = None
