"""The infos of the steps of some envs, kept until the episodes they belong to are complete."""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.errors import ConfigError, EnvError
from rlcore.types import Env, defines

if TYPE_CHECKING:
    from rlcore.types import Array

log = logging.getLogger(__name__)

# signed and unsigned integers, floats, and truth values
_KINDS: Final = "biuf"
_Row = dict[str, "Array"]  # by name, `[*shape]`


class StepInfos:
    """Hears of the infos of every step, and gives those of an episode as arrays.

    Numbers and arrays of numbers are kept, by names with `/` between a dict and what it holds; a log says once what is
    left out. Each step of every episode has to have the same of them, and of the same shapes. The reset of an episode
    may have fewer, as that of most of Gymnasium's envs does: there stands NaN, or 0 where a type knows no NaN.

    Args:
        env: hands them over.
        where: what asks for them, for messages.

    Raises:
        ConfigError: the env does not hand them over.
    """

    def __init__(self, env: Env, where: str) -> None:
        self._env_id = env.spec.id
        if not defines(env, Env.tell_infos):
            raise ConfigError(
                f"{where}: env {self._env_id!r} hands over no infos of its steps; leave the infos out, or give the env "
                "a method tell_infos"
            )
        self._shapes: dict[str, tuple[int, ...]] | None = None
        # of each env, since the first episode that was not taken; whether each row is of a reset
        self._rows: defaultdict[int, deque[tuple[bool, _Row]]] = defaultdict(deque)
        self._step: dict[int, int] = {}
        self._left_out: set[str] = set()
        env.tell_infos(self._listen)

    def take(self, env: int, steps: int) -> dict[str, Array]:
        """Return the infos of the next episode of an env, `[steps + 1, *shape]` by name, that of its reset first.

        Args:
            env: its number.
            steps: of the episode, all of which were made.

        Raises:
            ConfigError: others were heard of than belong to such an episode: the envs step in another process.
        """
        rows = self._rows[env]
        firsts = [rows[number][0] for number in range(min(len(rows), steps + 1))]
        if firsts != [True] + [False] * steps:
            raise ConfigError(
                f"infos of env {env} ({self._env_id!r}) do not belong to its steps; only the collector 'local' steps "
                "the envs that tell of them"
            )
        _, reset = rows.popleft()
        told = [rows.popleft()[1] for _ in range(steps)]
        self._tell_of(set(reset) - set(self._shapes or ()), "only a reset has it")
        return {name: self._column(name, reset, told) for name in self._shapes or ()}

    def forget(self) -> None:
        """Drop what belongs to episodes that were not taken."""
        self._rows.clear()

    def state_dict(self) -> dict[str, Any]:
        """Return the infos of the running episodes, of which each step has its own, and what those of steps are."""
        return {
            "shapes": None if self._shapes is None else {name: list(shape) for name, shape in self._shapes.items()},
            "rows": {
                str(env): {"reset": rows[0][1], "count": len(rows) - 1, "steps": self._steps(rows)}
                for env, rows in self._rows.items()
                if rows
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on in the middle of these episodes."""
        shapes = state["shapes"]
        self._shapes = None if shapes is None else {name: tuple(shape) for name, shape in shapes.items()}
        self._rows.clear()
        for env, saved in state["rows"].items():
            rows = self._rows[int(env)]
            rows.append((True, dict(saved["reset"])))
            for step in range(saved["count"]):
                rows.append((False, {name: np.asarray(column[step]) for name, column in saved["steps"].items()}))
            self._step[int(env)] = saved["count"]

    def _listen(self, env: int, infos: Mapping[str, Any], first: bool) -> None:
        row = dict(self._numbers(infos, ""))
        self._step[env] = step = 0 if first else self._step.get(env, 0) + 1
        if not first:
            self._check(env, step, row)
        self._rows[env].append((first, row))

    def _numbers(self, infos: Mapping[str, Any], begin: str) -> Iterator[tuple[str, Array]]:
        for key, value in infos.items():
            name = f"{begin}{key}"
            if isinstance(value, Mapping):
                yield from self._numbers(value, f"{name}/")
            elif (array := _array(value)) is not None:
                yield name, array
            else:
                self._tell_of({name}, f"it is a {type(value).__name__}, and no numbers")

    def _check(self, env: int, step: int, row: _Row) -> None:
        """Refuse infos that are others than those of the steps before.

        Raises:
            EnvError: names env, info and step.
        """
        found = {name: array.shape for name, array in row.items()}
        if self._shapes is None:
            self._shapes = found
            if not found:
                log.warning("env %r has no infos that are numbers; none are recorded", self._env_id)
        if found == self._shapes:
            return
        name = next(name for name in {**self._shapes, **found} if found.get(name) != self._shapes.get(name))
        before, now = (_told(shapes.get(name)) for shapes in (self._shapes, found))
        raise EnvError(
            f"env {self._env_id!r}, number {env}, step {step} of its episode: its infos have {now} under {name!r}, and "
            f"those of the steps before had {before}; a dataset has the same infos of each step: leave them out, or "
            "have a wrapper ([env] wrappers) fill or remove this one"
        )

    def _steps(self, rows: deque[tuple[bool, _Row]]) -> _Row:
        """Return the infos of the steps of a running episode, `[step, *shape]` by name."""
        told = [row for first, row in rows if not first]
        return {name: np.stack([row[name] for row in told]) for name in self._shapes or ()} if told else {}

    def _column(self, name: str, reset: _Row, told: list[_Row]) -> Array:
        column = np.stack([row[name] for row in told])
        first = reset.get(name)
        if first is not None and first.shape != column.shape[1:]:
            shapes = _told(first.shape), _told(column.shape[1:])
            self._tell_of({name}, f"that of a reset is {shapes[0]}, and those of steps {shapes[1]}")
            first = None
        if first is None:
            empty = np.nan if column.dtype.kind == "f" else 0
            first = np.full(column.shape[1:], empty, column.dtype)
        return np.concatenate([first[np.newaxis], column])

    def _tell_of(self, names: set[str], why: str) -> None:
        for name in sorted(names - self._left_out):
            log.warning("the info %r of env %r is left out: %s", name, self._env_id, why)
        self._left_out |= names


def _array(value: Any) -> Array | None:
    """Return a copy of numbers as an array, or None of what is none."""
    if isinstance(value, str | bytes | None):
        return None
    try:
        array = np.array(value)
    except (TypeError, ValueError, RuntimeError):  # lists of different lengths, tensors with a gradient
        return None
    return array if array.dtype.kind in _KINDS else None


def _told(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return "nothing"
    return "a number" if not shape else f"an array {list(shape)}"
