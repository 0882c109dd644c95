"""Several vector envs as one, in the order in which they are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcore.envs import inexact_env, unrestored_env
from rlcore.errors import ConfigError
from rlcore.state import modules_of
from rlcore.types import Env, EnvSpec, Step

if TYPE_CHECKING:
    from rlcore.types import Array


class JoinedEnv(Env):
    """Steps its envs one after another.

    Args:
        envs: with equal spaces, frame skip and reset mode.

    Raises:
        ConfigError: there is none, or they differ.
    """

    def __init__(self, envs: Sequence[Env]) -> None:
        if not envs:
            raise ConfigError("there are no envs to join")
        first = envs[0].spec
        for env in envs[1:]:
            own = _common(env.spec)
            for name, expected in _common(first).items():
                if expected != own[name]:
                    raise ConfigError(
                        f"envs to join differ in {name}: {expected} of {first.id!r}, {own[name]} of {env.spec.id!r}"
                    )
        self._envs = list(envs)
        ends = np.cumsum([env.spec.num_envs for env in envs]).tolist()
        self._shares = [slice(end - env.spec.num_envs, end) for env, end in zip(envs, ends, strict=True)]
        self.spec = replace(first, num_envs=ends[-1])

    def reset(self, seed: int | None = None) -> Array:
        """Reset every env, env `i` of all with `seed + i`."""
        seeds = [None if seed is None else seed + share.start for share in self._shares]
        return np.concatenate([env.reset(seed=own) for env, own in zip(self._envs, seeds, strict=True)])

    def step(self, action: Array) -> Step:
        """Step every env."""
        steps = [env.step(action[share]) for env, share in zip(self._envs, self._shares, strict=True)]
        finals: dict[int, Any] = {}
        infos: dict[int, Any] = {}
        for step, share in zip(steps, self._shares, strict=True):
            finals |= {share.start + index: final for index, final in step.final_observation.items()}
            infos |= {share.start + index: info for index, info in step.infos.items()}
        observation, reward, terminated, truncated = (np.concatenate([step[n] for step in steps]) for n in range(4))
        return Step(observation, reward, terminated, truncated, finals, infos)

    def close(self) -> None:
        """Close every env."""
        for env in self._envs:
            env.close()

    def modules(self) -> Iterator[str]:
        """Yield the names of the modules that the envs are written in, as far as they say so."""
        for env in self._envs:
            yield from modules_of(env)

    def inexact(self) -> str | None:
        """Return why the state of one of them cannot be saved, or None."""
        return next((reason for reason in map(inexact_env, self._envs) if reason), None)

    def unrestored(self) -> str | None:
        """Return what the last `load_state_dict` could not bring back of one of them, or None."""
        return next((reason for reason in map(unrestored_env, self._envs) if reason), None)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every env."""
        return {"envs": [env.state_dict() for env in self._envs]}  # type: ignore[attr-defined]

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the state of every env."""
        for env, saved in zip(self._envs, state["envs"], strict=True):
            env.load_state_dict(saved)  # type: ignore[attr-defined]


def _common(spec: EnvSpec) -> dict[str, object]:
    """Return what has to be the same in all envs that are joined, by name."""
    return {
        "observation_space": spec.observation_space,
        "action_space": spec.action_space,
        "frame_skip": spec.frame_skip,
        "reset_mode": spec.reset_mode,
    }
