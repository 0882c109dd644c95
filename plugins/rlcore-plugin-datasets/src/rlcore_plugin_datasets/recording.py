"""Recording episodes: a policy, or random actions, in the env of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.errors import EnvError
from rlcore.types import Env
from rlcore_plugin_datasets.episode import Episode
from rlcore_plugin_datasets.infos import StepInfos

if TYPE_CHECKING:
    from rlcore.types import Array

# keys of [env] that change nothing in what an env does
_OF_THE_SECTION: Final = frozenset({"use", "name", "id", "num_envs"})

Act = Callable[["Array"], "Array"]


def played(
    env: Env, act: Act, begin: Callable[[], None], seeds: range, most_steps: int, infos: bool = False
) -> Iterator[Episode]:
    """Yield an episode for each seed, to its end.

    Args:
        env: one env.
        act: observations `[1, *shape]` to actions `[1, *shape]` in the env's units.
        begin: called before each episode.
        seeds: of the resets.
        most_steps: of an episode.
        infos: whether those of the steps are recorded too.

    Raises:
        ConfigError: the env hands over no infos of its steps.
        EnvError: an episode has no end, or its infos are not the same of each step.
    """
    listening = StepInfos(env, "--infos") if infos else None
    for seed in seeds:
        begin()
        observation = np.array(env.reset(seed=seed))
        rows: list[tuple[Array, Array, float, bool, bool]] = []
        while True:
            action = np.array(act(observation))
            step = env.step(action.copy())
            terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
            rows.append((observation[0], action[0], float(step.reward[0]), terminated, truncated))
            observation = np.array(step.observation)
            if terminated or truncated:
                break
            if len(rows) == most_steps:
                raise EnvError(
                    f"env {env.spec.id!r}: the episode of seed {seed} has no end after {most_steps:,} steps; give the "
                    "env a time limit, or raise --most-steps"
                )
        last = np.array(step.final_observation.get(0, observation[0]))
        told = {} if listening is None else listening.take(0, len(rows))
        if listening is not None:
            listening.forget()  # the reset that follows an end at once; the next episode begins with another
        yield _episode(rows, last, seed, told)


def env_spec_text(env_id: str, section: Mapping[str, Any]) -> dict[str, str]:
    """Return the key of Minari's metadata with which it makes the env again; nothing where it could not.

    Args:
        env_id: of Gymnasium's registry.
        section: the `[env]` that it was made with; with keys of its own, Gymnasium's spec would be another env.
    """
    import gymnasium

    if set(section) - _OF_THE_SECTION or env_id not in gymnasium.registry:
        return {}
    try:
        text = gymnasium.spec(env_id).to_json()
        json.loads(text)
    except Exception:  # a spec with values that JSON has not: then nobody makes the env from the file
        return {}
    return {"env_spec": text}


def _episode(
    rows: list[tuple[Array, Array, float, bool, bool]], last: Array, seed: int, infos: Mapping[str, Array]
) -> Episode:
    observations, actions, rewards, terminations, truncations = zip(*rows, strict=True)
    return Episode(
        np.stack([*observations, last]),
        np.stack(actions),
        np.array(rewards, dtype=np.float64),
        np.array(terminations),
        np.array(truncations),
        seed,
        infos,
    )
