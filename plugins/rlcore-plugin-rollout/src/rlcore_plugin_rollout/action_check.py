"""Whether the actions of a policy lie in the action space: looked at by the batch, whoever made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.errors import PluginError
from rlcore.types import EnvSpec

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Array

# actions of single steps that are looked at together
TOGETHER: Final = 256
# integers up to which Python compares them faster than NumPy is called
FEW: Final = 64
# how far beyond a bound the rounding of single precision may bring an action, as a fraction of the larger bound
ROUNDING: Final = 1e-6


class ActionCheck:
    """Refuses actions outside of the action space.

    Args:
        spec: as the policy sees the env.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self._spec = spec
        self._space = spec.action_space
        self._shape = spec.action_space.shape or ()
        self._limits = _limits(spec.action_space)
        self._is_discrete = type(spec.action_space).__name__ == "Discrete"
        self._waiting: list[Array] = []

    def __call__(self, actions: Any) -> None:
        """Look at actions `[..., *action]`, an array or a tensor on the CPU.

        Raises:
            PluginError: one lies outside, or is of another kind of number or shape.
        """
        if self._limits is None:
            return
        array, shape = np.asarray(actions), self._shape
        kinds, low, high = self._limits
        if array.dtype.kind not in kinds or array.shape[array.ndim - len(shape) :] != shape:
            raise self._error(f"actions of {array.dtype} and shape {list(array.shape)}")
        if low is None or (self._is_discrete and 0 < array.size <= FEW and _all_within(array, low, high)):
            return
        inside = (array >= low) & (array <= high)  # False for what is not a number
        if not inside.all():
            raise self._error(f"the action {array[tuple(np.argwhere(~inside)[0])]}")

    def add(self, actions: Array) -> None:
        """Take the actions of one step `[env, *action]`, to look at many steps at once.

        Raises:
            PluginError: as for a call.
        """
        self._waiting.append(actions)
        if len(self._waiting) == TOGETHER:
            self.finish()

    def finish(self) -> None:
        """Look at what was added.

        Raises:
            PluginError: as for a call.
        """
        if self._waiting:
            together = np.stack(self._waiting)
            self._waiting.clear()
            self(together)

    def _error(self, what: str) -> PluginError:
        return PluginError(
            f"the policy gave {what}, outside of the action space {self._space} of env {self._spec.id!r}; a model "
            "must keep to the space, or refuse it when it is built"
        )


def _all_within(array: Array, low: int, high: int) -> bool:
    numbers = array.reshape(-1).tolist()
    return bool(low <= min(numbers) and max(numbers) <= high)


def _limits(space: gymnasium.Space[Any]) -> tuple[str, Any, Any] | None:
    """Return the kinds of numbers and the bounds of a space; no bounds where all numbers fit, None where unknown.

    Bounds of floats are wider by what rounding may do: a policy that scales its outputs to the bounds is right.
    """
    name = type(space).__name__
    if name == "Box":
        kinds = "fiu" if np.dtype(space.dtype).kind == "f" else "iub"
        low, high = space.low, space.high  # type: ignore[attr-defined]
        if kinds == "iub":
            return kinds, low, high
        if np.isneginf(low).all() and np.isposinf(high).all():
            return kinds, None, None
        slack = ROUNDING * np.abs([low, high]).max(axis=0, initial=0, where=np.isfinite([low, high]))
        return kinds, low - slack, high + slack
    if name in ("Discrete", "MultiDiscrete"):
        count = space.n if name == "Discrete" else space.nvec  # type: ignore[attr-defined]
        first = space.start  # type: ignore[attr-defined]
        return "iu", first, first + count - 1
    return ("iub", 0, 1) if name == "MultiBinary" else None
