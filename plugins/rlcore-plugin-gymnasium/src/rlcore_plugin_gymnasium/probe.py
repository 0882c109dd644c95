"""Whether the state of an env can be saved: tried out on instances of its own, with every shared generator put back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import gymnasium
import numpy as np

from rlcore.envs import keeping_to_masks
from rlcore.errors import FROM_OUTSIDE, describe
from rlcore.state import through_checkpoint, untouched_generators
from rlcore.types import EnvSpec, Heart, Stateful, Step
from rlcore_plugin_gymnasium.held import contents

SEED: Final = 20_011
STEPS: Final = 20


class Saved(Stateful, Protocol):
    """A vector env whose state can be taken and set.

    Attributes:
        spec: of the envs.
        heart: counts its steps here, as it may be a slow one.
    """

    spec: EnvSpec
    heart: Heart

    def reset(self, seed: int | None = None) -> Any:
        """Reset the envs; see `rlcore.types.Env`."""
        ...

    def step(self, action: Any) -> Step:
        """Step the envs."""
        ...

    def close(self) -> object:
        """Close the envs."""
        ...

    def begin(self) -> Any:
        """Begin a new episode in every env, as after the end of one."""
        ...

    def held(self) -> dict[str, str]:
        """Return hashes of what the envs hold, by attribute."""
        ...

    def large_attributes(self) -> set[str]:
        """Return the names of attributes that hold many values."""
        ...

    def shared(self) -> dict[str, str]:
        """Return hashes of what all instances share, by class or module and name."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What trying an env out showed.

    Attributes:
        behaviour: why a restored env does not go on like the one that was saved, or None when it does.
        forgotten: attributes, and infos, that are not restored and tell of earlier episodes.
        shared: what changed in a class or module, which every instance would have to have restored.
        ignored: attributes that differ whenever the same is done again, such as a time; and large ones that did not
            change, since looking at each of them costs time.
        is_final: whether nothing was shown, as other instances cannot be made or closed.
    """

    behaviour: str | None = None
    forgotten: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()
    is_final: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether everything goes on as before."""
        return self.behaviour is None and not self.forgotten and not self.shared

    def why(self, how: str) -> str | None:
        """Return what keeps a resume from being exact, as said of an env; None where it is.

        Args:
            how: the way in which the env is restored.
        """
        if self.is_exact:
            return None
        return f"was not tried out: {self}" if self.is_final else f"does not go on as before {how}: {self}"

    def __str__(self) -> str:
        reasons = [self.behaviour] if self.behaviour is not None else []
        if self.shared:
            reasons.append(f"its classes or modules remember earlier episodes ({', '.join(self.shared)})")
        if self.forgotten:
            reasons.append(f"it remembers earlier episodes ({', '.join(self.forgotten)})")
        return "; ".join(reasons)


NOT_TRIED: Final = Outcome("[env] try_out = false leaves it out", is_final=True)


@dataclass
class _Pass:
    """What one instance showed.

    Attributes:
        steps: the bytes of each step after the save.
        infos: for each of those steps, the hashes of the infos by name.
        held: at the save, or after the restore.
        begun: held where the episode of the save began, or after a restore of that.
        observation: the observations at the save.
        state: at the save.
        beginning: the state where the episode of the save began.
        changed: what changed in classes and modules.
        constant: large attributes that did not change.
    """

    steps: list[bytes]
    infos: list[dict[str, str]]
    held: dict[str, str]
    begun: dict[str, str]
    observation: Any = None
    state: Any = None
    beginning: Any = None
    changed: tuple[str, ...] = ()
    constant: frozenset[str] = frozenset()


def tried_out(make: Callable[[], Saved]) -> Outcome:
    """Compare a restored env with the one that was saved.

    One env goes through two episodes, is saved at the beginning and in the middle of the second, and goes on, over a
    reset too. Others get its states, and one the same actions. Every observation, reward and flag must be equal to the
    bit, and the infos and what the envs hold, too. Where only the last differ, one more env repeats the first, which
    tells a memory from a clock.
    """
    with untouched_generators():
        try:
            with _instance(make) as first, _failing("saving"):
                actions = _actions(first)
                one = _until_the_end(first, actions)
            with _instance(make) as second, _failing("restoring"):
                second.load_state_dict(one.beginning)
                begun = second.held()
            with _instance(make) as third, _failing("restoring"):  # a new one, as at a resume
                third.load_state_dict(one.state)
                held = third.held()
                restored = _Pass(*_rest(third, actions, one.observation), held, begun)
            behaviour = _first_difference(one, restored)
            forgotten = _differing(one, restored)
            unrepeatable = _differing(one, _repeated(make, actions)) if forgotten else []
        except _TrialError as failed:
            return Outcome(str(failed), is_final=failed.is_final)
    remaining = [name for name in forgotten if name not in unrepeatable]
    return Outcome(behaviour, tuple(remaining), one.changed, one.constant.union(unrepeatable))


def _first_difference(saved: _Pass, restored: _Pass) -> str | None:
    for number, (saved_step, restored_step) in enumerate(zip(saved.steps, restored.steps, strict=True)):
        if saved_step != restored_step:
            return f"step {number} after a restore is not the step after the save"
    return None


class _TrialError(Exception):
    """Says what an env could not do.

    Attributes:
        is_final: whether another instance could not be made or closed.
    """

    def __init__(self, text: str, is_final: bool) -> None:
        super().__init__(text)
        self.is_final = is_final


@contextmanager
def _instance(make: Callable[[], Saved]) -> Iterator[Saved]:
    """Make another instance, and close it before the next one is made."""
    with _failing("making another instance beside those of the run", is_final=True):
        env = make()
    try:
        yield env
    finally:
        with _failing("closing", is_final=True):
            env.close()


@contextmanager
def _failing(what: str, is_final: bool = False) -> Iterator[None]:
    """Let whatever an env raises be the end of the trial."""
    try:
        yield
    except FROM_OUTSIDE:
        raise
    except BaseException as error:
        raise _TrialError(f"{what} fails: {describe(error)}", is_final) from error


def _until_the_end(env: Saved, actions: list[Any]) -> _Pass:
    observation = env.reset(seed=SEED)
    shared, at_reset = env.shared(), env.held()
    _steps(env, actions[:STEPS], observation)
    observation = env.begin()
    beginning, begun = through_checkpoint(env.state_dict()), env.held()
    _, observation = _steps(env, actions[STEPS : 2 * STEPS], observation)
    state, at_save = through_checkpoint(env.state_dict()), env.held()
    steps, infos = _rest(env, actions, observation)
    changed = tuple(name for name, value in env.shared().items() if shared.get(name) != value)
    same = {name for name, value in env.held().items() if at_reset.get(name) == value == at_save.get(name)}
    constant = frozenset(env.large_attributes() & same)
    return _Pass(steps, infos, at_save, begun, observation, state, beginning, changed, constant)


def _repeated(make: Callable[[], Saved], actions: list[Any]) -> _Pass:
    with _instance(make) as env, _failing("repeating"):
        return _until_the_end(env, actions)


def _differing(one: _Pass, other: _Pass) -> list[str]:
    """Return the attributes, and the infos, that differ between two instances."""
    pairs = ((one.begun, other.begun), (one.held, other.held))
    names = [
        name
        for one_names, other_names in pairs
        for name in {**one_names, **other_names}
        if one_names.get(name) != other_names.get(name)
    ]
    alike = one.steps == other.steps  # else infos differ for that reason
    for one_names, other_names in zip(one.infos, other.infos, strict=True) if alike else ():
        names += [name for name in {**one_names, **other_names} if one_names.get(name) != other_names.get(name)]
    return list(dict.fromkeys(names))


def _actions(env: Saved) -> list[Any]:
    """Return random actions, from a copy of the space, as the generator of a space may be shared."""
    space = copy.deepcopy(env.spec.action_space)
    space.seed(SEED)
    actions = [np.stack([space.sample() for _ in range(env.spec.num_envs)]) for _ in range(4 * STEPS)]
    if isinstance(space, gymnasium.spaces.Discrete):
        actions[STEPS - 1][:] = space.start + space.n - 1  # a memory of the last one shows: the first is that of none
    return actions


def _rest(env: Saved, actions: list[Any], observation: Any) -> tuple[list[bytes], list[dict[str, str]]]:
    first_part, _ = _steps(env, actions[2 * STEPS : 3 * STEPS], observation)
    steps = [*first_part, *_steps(env, actions[3 * STEPS :], env.begin())[0]]
    return [step for step, _ in steps], [infos for _, infos in steps]


def _steps(env: Saved, actions: list[Any], observation: Any) -> tuple[list[tuple[bytes, dict[str, str]]], Any]:
    """Return everything that the steps gave, as bytes, with the hashes of the infos; and the last observations.

    Args:
        env: is stepped.
        actions: random ones; those that a mask forbids become others.
        observation: the observations before the first step.
    """
    recorded, allowed = [], keeping_to_masks(env.spec)
    for action in actions:
        step = env.step(allowed(action, observation))
        observation = step.observation
        env.heart.beats += 1
        finals = b"".join(np.asarray(last).tobytes() for _, last in sorted(step.final_observation.items()))
        flags = np.asarray(step.terminated).tobytes() + np.asarray(step.truncated).tobytes()
        content = np.asarray(step.observation).tobytes() + np.asarray(step.reward).tobytes() + flags + finals
        recorded.append((content, _hashes(step.infos)))
    return recorded, np.array(observation)


def _hashes(infos: Mapping[int, Mapping[str, Any]]) -> dict[str, str]:
    """Return a hash of each info, down to the names in its tables, of which one may be a time."""
    hashes: dict[str, str] = {}
    for info in infos.values():
        for name, value in info.items():
            parts = value.items() if isinstance(value, Mapping) else [("", value)]
            hashes |= {f"infos[{name!r}]" + (f"[{part!r}]" if part else ""): contents(item) for part, item in parts}
    return hashes
