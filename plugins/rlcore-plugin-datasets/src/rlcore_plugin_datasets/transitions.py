"""From recorded episodes to the columns of transitions that a buffer holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import torch
from rlcore_plugin_replay.n_step import STEPS as STEPS
from rlcore_plugin_replay.n_step import NStep
from torch import Tensor

from rlcore.envs import observation_dtype
from rlcore.errors import ConfigError
from rlcore.types import Context, Key, Part, Transform, defines
from rlcore_plugin_datasets.dataset import Dataset
from rlcore_plugin_datasets.episode import Episode, problems

if TYPE_CHECKING:
    from rlcore.types import Array
    from rlcore_plugin_datasets.rows import DataConfig

ENTRIES: Final[tuple[Key, ...]] = (
    "observation",
    "action",
    ("next", "observation"),
    ("next", "reward"),
    ("next", "done"),
    ("next", "terminated"),
    ("next", "truncated"),
)

# the discounted sum of the rewards from the step of a row to the end of its episode as recorded, `[row, 1]`, float32
RETURN_TO_GO: Final[Key] = "return_to_go"

# rows that are taken together from a file, at least
_PART: Final = 16_384


class HowJoined(NamedTuple):
    """How steps are joined into transitions.

    Attributes:
        n_steps: how many at most.
        gamma: discount of rewards that are summed.
        return_to_go: whether each row has the sum to the end of its episode.
    """

    n_steps: int = 1
    gamma: float = 1.0
    return_to_go: bool = False


Columns = dict[Key, Tensor]


class EpisodeColumns(NamedTuple):
    """The steps of one episode, with each observation once.

    Attributes:
        observations: `[step + 1, *shape]`, the last one included.
        steps: the other entries of a transition, `[step, *shape]` by key.
        seen: dtype of the observations that a policy is given.
    """

    observations: Array
    steps: dict[Key, Array]
    seen: Any

    def __len__(self) -> int:
        return len(self.observations) - 1

    def entries(self) -> dict[Key, tuple[torch.dtype, tuple[int, ...]]]:
        """Return dtype and shape of every entry of a transition, in the order of `ENTRIES`."""
        observed = (_torch(self.seen), self.observations.shape[1:])
        own = {key: (_torch(column.dtype), column.shape[1:]) for key, column in self.steps.items()}
        return {key: own.get(key, observed) for key in (*ENTRIES, *(key for key in own if key not in ENTRIES))}


class SharedTransitions(NamedTuple):
    """The transitions of a dataset with each observation once, to be taken once.

    Attributes:
        steps: how many there are, by what the dataset says of itself.
        episodes: how many they are in.
        parts: some episodes at a time.
    """

    steps: int
    episodes: int
    parts: Iterator[list[EpisodeColumns]]


class Transitions(NamedTuple):
    """The transitions of a dataset, to be taken once.

    Attributes:
        rows: how many there are, by what the dataset says of itself.
        parts: their columns on the host, `[row, *shape]` by key, some rows at a time.
    """

    rows: int
    parts: Iterator[Columns]


def transitions(dataset: Dataset, config: DataConfig, joined: HowJoined, context: Context) -> Transitions:
    """Return the transitions of a dataset.

    They come part by part, so that the data are in memory once; all together where they are chosen, joined or
    transformed.

    Args:
        dataset: whose data.
        config: which episodes.
        joined: how many steps a transition has, and what it says of those after it.
        context: of the run; its transforms see the observations.

    Raises:
        ConfigError: an episode is not as it should be, with file, episode and step; or a transform cannot see data. Of
            parts that are not taken yet, when they are.
    """
    episodes = _closed(dataset, config.open_episodes == "truncate")
    if config.best == 1.0 and joined.n_steps == 1 and not context.transforms:
        parts = (_columns(some, joined, context) for some in _some_at_a_time(episodes))
        return Transitions(dataset.metadata.steps, parts)
    columns = _columns(_chosen(list(episodes), config.best), joined, context)
    if joined.n_steps > 1:
        columns = _joined(columns, joined.n_steps, joined.gamma)
    return Transitions(columns["action"].shape[0], iter([columns]))


def shared_transitions(
    dataset: Dataset, config: DataConfig, joined: HowJoined, context: Context
) -> SharedTransitions | None:
    """Return the transitions of a dataset with each observation once; None where the next one is another than that.

    So it is where steps are joined. Where observations are transformed they are all in memory anyway.

    Args:
        dataset: whose data.
        config: which episodes.
        joined: how many steps a transition has, and what it says of those after it.
        context: of the run.

    Raises:
        ConfigError: an episode is not as it should be; see `transitions`.
    """
    if joined.n_steps > 1 or context.transforms:
        return None
    episodes = _closed(dataset, config.open_episodes == "truncate")
    steps, count = dataset.metadata.steps, dataset.metadata.episodes
    if config.best < 1.0:
        chosen = _chosen(list(episodes), config.best)
        steps, count, episodes = sum(map(len, chosen)), len(chosen), iter(chosen)
    parts = ([_of_episode(episode, joined, context) for episode in some] for some in _some_at_a_time(episodes))
    return SharedTransitions(steps, count, parts)


def _of_episode(episode: Episode, joined: HowJoined, context: Context) -> EpisodeColumns:
    """Return the columns of one episode, in the dtypes that a run trains with."""
    actions = episode.actions.astype(context.env_spec.action_space.dtype, copy=False)
    trained = np.float32 if actions.dtype.kind == "f" else np.int64
    terminated, truncated = episode.terminations, episode.truncations
    steps: dict[Key, Array] = {
        "action": actions.astype(trained, copy=False),
        ("next", "reward"): episode.rewards.astype(np.float32)[:, np.newaxis],
        ("next", "done"): (terminated | truncated)[:, np.newaxis],
        ("next", "terminated"): terminated[:, np.newaxis],
        ("next", "truncated"): (truncated & ~terminated)[:, np.newaxis],
    }
    if joined.return_to_go:
        steps[RETURN_TO_GO] = episode.returns_to_go(joined.gamma).astype(np.float32)[:, np.newaxis]
    return EpisodeColumns(episode.observations, steps, observation_dtype(context.env_spec.observation_space))


def _columns(episodes: Sequence[Episode], joined: HowJoined, context: Context) -> Columns:
    """Return the transitions of one step of some episodes."""
    observations, following = (
        np.concatenate([episode.observations[part] for episode in episodes])
        for part in (slice(None, -1), slice(1, None))
    )
    observations, following = _seen(observations, following, context)
    action_space, seen = context.env_spec.action_space, observation_dtype(context.env_spec.observation_space)
    actions = np.concatenate([episode.actions for episode in episodes]).astype(action_space.dtype, copy=False)
    terminated, truncated = (_column(episodes, name) for name in ("terminations", "truncations"))
    to_go: Columns = {}
    if joined.return_to_go:
        sums = np.concatenate([episode.returns_to_go(joined.gamma) for episode in episodes])
        to_go[RETURN_TO_GO] = torch.from_numpy(sums).float().unsqueeze(-1)
    return {
        "observation": torch.from_numpy(observations).to(_torch(seen)),
        "action": _as_trained(torch.from_numpy(actions)),
        ("next", "observation"): torch.from_numpy(following).to(_torch(seen)),
        ("next", "reward"): _column(episodes, "rewards").float(),
        ("next", "done"): terminated | truncated,
        ("next", "terminated"): terminated,
        ("next", "truncated"): truncated & ~terminated,
        **to_go,
    }


def _closed(dataset: Dataset, truncate: bool) -> Iterator[Episode]:
    """Yield the episodes, each with an end."""
    number = -1
    for number, episode in enumerate(dataset.episodes()):
        if truncate and len(episode) and len(episode.truncations) == len(episode) and not episode.ends:
            episode.truncations[-1] = True
        for problem in problems(episode, dataset.spaces):
            advice = '; open_episodes = "truncate" takes it as truncated there' if "has no end" in problem else ""
            raise ConfigError(f"[buffer] path: {dataset.file}, episode {number}, {problem}{advice}")
        yield episode
    if number < 0:
        raise ConfigError(f"[buffer] path: {dataset.file} has no episode")


def _some_at_a_time(episodes: Iterator[Episode]) -> Iterator[list[Episode]]:
    """Yield episodes together, as many as make a part of rows."""
    some: list[Episode] = []
    rows = 0
    for episode in episodes:
        some.append(episode)
        rows += len(episode)
        if rows >= _PART:
            yield some
            some, rows = [], 0
    if some:
        yield some


def _chosen(episodes: list[Episode], best: float) -> list[Episode]:
    """Return the fraction of the episodes with the best returns, in the order of the data."""
    if best == 1.0:
        return episodes
    order = sorted(range(len(episodes)), key=lambda number: -episodes[number].return_)
    return [episodes[number] for number in sorted(order[: math.ceil(best * len(episodes))])]


def _seen(observations: Array, following: Array, context: Context) -> tuple[Array, Array]:
    """Return observations as the transforms of the run leave them, which first learn what they learn from them."""
    for transform in context.transforms:
        _check_transform(transform)
        transform.step(observations, np.zeros(len(observations), dtype=bool))
        frozen = transform.frozen()
        observations, following = (
            np.array(frozen.step(array, np.zeros(len(array), dtype=bool))) for array in (observations, following)
        )
    return observations, following


def _check_transform(transform: Transform) -> None:
    name = type(transform).__name__
    if defines(transform, Transform.action):
        raise ConfigError(f"[transform] {name} changes actions, and those of the data are the env's own; leave it out")
    if defines(transform, Part.forget_episodes):
        raise ConfigError(f"[transform] {name} remembers episodes, and a dataset hands out steps one by one")


def _column(episodes: Sequence[Episode], name: str) -> Tensor:
    return torch.from_numpy(np.concatenate([getattr(episode, name) for episode in episodes])).unsqueeze(-1)


def _as_trained(actions: Tensor) -> Tensor:
    """Return actions with the dtypes of collected ones: float32, or int64."""
    return actions.float() if actions.is_floating_point() else actions.long()


def _torch(dtype: Any) -> torch.dtype:
    return torch.from_numpy(np.zeros(1, dtype)).dtype


def _joined(columns: Columns, steps: int, gamma: float) -> Columns:
    """Return n-step transitions; the data end with an episode, so that what is put behind them joins nothing."""
    padded = {
        key: torch.cat([column, column[-1:].expand(steps - 1, *column.shape[1:])]).unsqueeze(0)
        for key, column in columns.items()
    }
    count = padded["action"].shape[1]
    joined, _ = NStep(steps, gamma)(padded, torch.ones(1, count, dtype=torch.bool))
    return {key: column.squeeze(0) for key, column in joined.items()}
