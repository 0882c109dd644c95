"""What envs with goals say of other goals: the `compute_reward` and `compute_terminated` of gymnasium-robotics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rlcore.errors import ConfigError
from rlcore_plugin_gymnasium.chain import layers

if TYPE_CHECKING:
    import numpy.typing as npt

Outcome: TypeAlias = "tuple[npt.NDArray[Any], npt.NDArray[Any] | None]"


def outcome(env: Any, name: str, achieved: npt.NDArray[Any], desired: npt.NDArray[Any]) -> Outcome:
    """Return the rewards `[row]` of goals `[row, *goal]`, and whether they end episodes, None where nothing says so.

    Args:
        env: a single env with its wrappers.
        name: for messages.
        achieved: goals that were reached.
        desired: goals that were wanted.

    Raises:
        ConfigError: it has no `compute_reward`.
    """
    reward, terminated = _method(env, "compute_reward"), _method(env, "compute_terminated")
    if reward is None:
        raise ConfigError(
            f"[env] {name} has no compute_reward(achieved_goal, desired_goal, info), as the envs of "
            "gymnasium-robotics have it, so that nothing says what another goal would have given"
        )
    ends = None if terminated is None else _of_rows(terminated, achieved, desired).astype(bool)
    return _of_rows(reward, achieved, desired).astype(np.float64), ends


def _method(env: Any, name: str) -> Callable[..., Any] | None:
    """Return the method of the outermost layer that has it in its class; wrappers pass no attributes on."""
    return next((getattr(layer, name) for layer in layers(env) if hasattr(type(layer), name)), None)


def _of_rows(method: Callable[..., Any], achieved: npt.NDArray[Any], desired: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Call a method for all rows at once where it takes them, else for one after the other."""
    try:
        whole = np.asarray(method(achieved, desired, {}))
    except (TypeError, ValueError, IndexError):
        whole = np.empty(0)
    if whole.shape == (len(achieved),) and len(achieved) != 1:
        return whole
    return np.array([np.asarray(method(*pair, {})).item() for pair in zip(achieved, desired, strict=True)])
