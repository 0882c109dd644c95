"""How an env came to where it is: how its episode began, and every action since. Played again, it gives the same state.

This needs nothing of the environment but determinism, and works where its own state would be incomplete: derived
quantities of a simulator that lag one step behind its coordinates come out right too. What an env remembers of earlier
episodes is put back before the first step, for envs that do; whether it is all there in the end, hashes tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from gymnasium.wrappers.utils import RunningMeanStd

from rlcore.errors import EnvError
from rlcore_plugin_gymnasium.box2d import reset_of
from rlcore_plugin_gymnasium.chain import layers
from rlcore_plugin_gymnasium.held import held, take
from rlcore_plugin_gymnasium.put_back import put_back

if TYPE_CHECKING:
    import gymnasium
    import numpy.typing as npt

# an episode longer than this is not recorded to its end: playing it again would take too long
LONGEST: Final = 200_000


@dataclass(frozen=True)
class Way:
    """How the episodes of an env are recorded, as trying it out showed.

    Attributes:
        reseeded: whether every episode begins with a seed of ours, for envs that have generators of their own.
        remembers: whether what the env holds is taken before every episode, for envs that remember earlier ones.
        ignored: attributes that are never the same twice, such as a time, and large ones that did not change.
    """

    reseeded: bool = False
    remembers: bool = False
    ignored: frozenset[str] = frozenset()


PLAIN: Final = Way()


class Recording:
    """The running episode of one env.

    Args:
        env: the env.
        way: how it is recorded.
        seed: of the seeds, where `reseeded`.

    Attributes:
        actions: since the reset, in order.
        too_much: whether the env remembers more than can be taken.
        lost: attributes that were not as before after the last `play`.
        infos: of the last reset.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], way: Way = PLAIN, seed: int = 0) -> None:
        self.actions: list[Any] = []
        self.too_much = False
        self.lost: list[str] = []
        self.infos: Mapping[str, Any] = {}
        self._env = env
        self._reset = reset_of(env)
        self._way = way
        self._memory: dict[str, Any] | None = None
        self._seeds = np.random.default_rng(seed)
        self._seed: int | None = None
        self._generator: dict[str, Any] | None = None
        self._wrappers: list[Any] = []

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Reset the env, and note how."""
        if seed is not None and self._way.reseeded:
            self._seeds = np.random.default_rng(seed)
        elif self._way.reseeded:
            seed = int(self._seeds.integers(2**31))
        self._seed = seed
        self._generator = None if seed is not None else _state_of(self._env.unwrapped.np_random)
        self._wrappers = wrapper_states(self._env)
        if self._way.remembers:
            self._memory, complete = take(self._env, ignored=self._way.ignored)
            self.too_much = not complete
        self.actions.clear()
        observation, self.infos = self._reset(seed=seed)
        return observation  # type: ignore[no-any-return]

    def state_dict(self, observation: npt.NDArray[Any]) -> dict[str, Any]:
        """Return the recording, with the last observation to check it against."""
        return {
            "seed": self._seed,
            "generator": self._generator,
            "seeds": dict(self._seeds.bit_generator.state),
            "actions": np.asarray(self.actions),
            "wrappers_before": self._wrappers,
            "wrappers_after": wrapper_states(self._env),
            "observation": np.array(observation),
            "np_random_seed": getattr(self._env.unwrapped, "_np_random_seed", None),
            "memory_before": self._memory,
            "held": held(self._env, self._way.ignored),
        }

    def play(self, state: Mapping[str, Any], step: Callable[[Any], Any]) -> None:
        """Bring the env to where a recording left it.

        Args:
            state: from `state_dict()`.
            step: steps the env with an action and returns the observation.

        Raises:
            EnvError: the last observation is not the one that was recorded.
        """
        if state["generator"] is not None:
            _set_state_of(self._env.unwrapped.np_random, state["generator"])
        set_wrapper_states(self._env, state["wrappers_before"])
        memory = state.get("memory_before")
        if memory is not None:
            put_back(self._env, memory, self._way.ignored)
        self.actions.clear()
        observation, _ = self._reset(seed=state["seed"])
        if "np_random_seed" in state:
            self._env.unwrapped._np_random_seed = state["np_random_seed"]
        for action in state["actions"].tolist() if state["actions"].ndim == 1 else state["actions"]:
            observation = step(action)
            self.actions.append(action)
        expected = np.asarray(state["observation"])
        if np.asarray(observation).astype(expected.dtype).tobytes() != expected.tobytes():
            raise EnvError(
                f"env {self._env.spec.id if self._env.spec else self._env}: the {len(self.actions)} actions of its "
                "running episode, played again, end in another observation than before; it is not deterministic. "
                "Begin new episodes with --fresh collector"
            )
        set_wrapper_states(self._env, state["wrappers_after"])
        self._seed, self._generator, self._wrappers = state["seed"], state["generator"], state["wrappers_before"]
        self._seeds.bit_generator.state = state["seeds"]
        self._memory = memory
        self.lost = differing(state.get("held"), held(self._env, self._way.ignored))


def _state_of(generator: Any) -> dict[str, Any]:
    """Return the state of a generator of NumPy, of the older kind too, as those of dm_control are."""
    older = isinstance(generator, np.random.RandomState)
    return dict(generator.get_state(legacy=False) if older else generator.bit_generator.state)


def _set_state_of(generator: Any, state: dict[str, Any]) -> None:
    if isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def differing(earlier: Mapping[str, str] | None, now: Mapping[str, str]) -> list[str]:
    """Return the attributes that are not what they were; a checkpoint of an rlcore without hashes says nothing."""
    names = () if earlier is None else {**earlier, **now}
    return [name for name in names if earlier is None or earlier.get(name) != now.get(name)]


def wrapper_states(env: gymnasium.Env[Any, Any]) -> list[Any]:
    """Return the state of each wrapper that outlives an episode: its own, or its running statistics."""
    states = []
    for wrapper in layers(env)[:-1]:
        if hasattr(wrapper, "state_dict"):
            states.append(wrapper.state_dict())
        else:
            states.append(
                {
                    name: {"mean": np.array(value.mean), "var": np.array(value.var), "count": float(value.count)}
                    for name, value in vars(wrapper).items()
                    if isinstance(value, RunningMeanStd)
                }
            )
    return states


def set_wrapper_states(env: gymnasium.Env[Any, Any], states: list[Any]) -> None:
    """Set what `wrapper_states` returned."""
    for wrapper, state in zip(layers(env)[:-1], states, strict=True):
        if hasattr(wrapper, "load_state_dict"):
            wrapper.load_state_dict(state)
            continue
        for name, statistics in state.items():
            running = getattr(wrapper, name)
            running.mean, running.var = np.array(statistics["mean"]), np.array(statistics["var"])
            running.count = statistics["count"]
