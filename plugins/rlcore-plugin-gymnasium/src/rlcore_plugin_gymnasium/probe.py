"""Whether the state of an env can be saved: tried out on instances of its own, with every shared generator put back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from rlcore.errors import FROM_OUTSIDE, describe
from rlcore.random_state import untouched_generators
from rlcore.state_tree import through_checkpoint
from rlcore.types import Env, Stateful

SEED: Final = 20_011
STEPS: Final = 20


class Saved(Env, Stateful, Protocol):
    """A vector env whose state can be taken and set."""

    def begin(self) -> Any:
        """Begin a new episode in every env, as after the end of one."""
        ...


def difference(make: Callable[[], Saved]) -> str | None:
    """Return why a restored env does not go on like the one that was saved, or None when it does.

    One env goes through two episodes, is saved in the midst of the second, and goes on, also over a reset. Another gets
    its state and the same actions. Every observation, reward and flag must be equal to the bit.
    """
    with untouched_generators():
        first = make()
        try:
            actions = _actions(first)
            first.reset(seed=SEED)
            _steps(first, actions[:STEPS])
            first.begin()
            _steps(first, actions[STEPS : 2 * STEPS])
            state = through_checkpoint(first.state_dict())
            expected = _rest(first, actions[2 * STEPS :])
        except FROM_OUTSIDE:
            raise
        except BaseException as error:
            return f"saving fails: {describe(error)}"
        finally:
            first.close()
        second = make()
        try:
            second.load_state_dict(state)
            found = _rest(second, actions[2 * STEPS :])
        except FROM_OUTSIDE:
            raise
        except BaseException as error:
            return f"restoring fails: {describe(error)}"
        finally:
            second.close()
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if one != other:
            return f"step {number} after a restore is not the step after the save"
    return None


def _actions(env: Saved) -> list[Any]:
    """Return random actions, from a copy of the space, as the generator of a space may be shared."""
    space = copy.deepcopy(env.spec.action_space)
    space.seed(SEED)
    return [np.stack([space.sample() for _ in range(env.spec.num_envs)]) for _ in range(4 * STEPS)]


def _rest(env: Saved, actions: list[Any]) -> list[bytes]:
    before = _steps(env, actions[:STEPS])
    env.begin()
    return before + _steps(env, actions[STEPS:])


def _steps(env: Saved, actions: list[Any]) -> list[bytes]:
    """Return everything that the steps gave, as bytes."""
    seen = []
    for action in actions:
        step = env.step(action)
        finals = b"".join(np.asarray(last).tobytes() for _, last in sorted(step.final_observation.items()))
        flags = np.asarray(step.terminated).tobytes() + np.asarray(step.truncated).tobytes()
        seen.append(np.asarray(step.observation).tobytes() + np.asarray(step.reward).tobytes() + flags + finals)
    return seen
