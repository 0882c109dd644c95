"""What the actions of `rlcore data` answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ShownDataset:
    """What a dataset holds.

    Attributes:
        folder: where it is.
        id: its name.
        env: id of the env that it was recorded in; empty where it does not say.
        observations: their space, as Gymnasium prints it.
        actions: their space.
        episodes: how many.
        steps: of all episodes.
        mean_return: over the episodes.
        min_return: the lowest.
        max_return: the highest.
        format: of its files.
        checksum: of its data; null in a dataset of others.
    """

    folder: str
    id: str
    env: str
    observations: str
    actions: str
    episodes: int
    steps: int
    mean_return: float
    min_return: float
    max_return: float
    format: str
    checksum: str | None


@dataclass(frozen=True)
class CheckedDataset:
    """A dataset of which every value was looked at.

    Attributes:
        folder: where it is.
        episodes: how many.
        checksum: whether there is one that fits, in words.
        problems: the first of them; none where all is well.
        more: whether there are further ones.
    """

    folder: str
    episodes: int
    checksum: str
    problems: list[str]
    more: bool
