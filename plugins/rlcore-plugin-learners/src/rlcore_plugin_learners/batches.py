"""What an update trains on: columns `[row, ...]` for each module, and minibatches of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlcore.errors import ArgumentTypeError, ConfigError, UnwrittenEntryError, did_you_mean
from rlcore_plugin_learners.columns import DEFAULT_MODULE_ID
from rlcore_plugin_learners.episode_columns import EpisodeColumns, is_episode, of_agents


class ModuleBatch(dict[str, Tensor]):
    """The columns of one module by name, each `[row, ...]`."""

    def __missing__(self, name: str) -> Tensor:
        raise UnwrittenEntryError(
            f"the batch has no column {name!r}{did_you_mean(name, self)}; it has {', '.join(self) or 'none'}"
        )

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.values()))) if self else 0

    def slice(self, start: int, stop: int) -> ModuleBatch:
        """Return some of the rows, as views."""
        return ModuleBatch({name: column[start:stop] for name, column in self.items()})

    def take(self, rows: Tensor) -> ModuleBatch:
        """Return the rows of these numbers, as copies."""
        return ModuleBatch({name: column.index_select(0, rows) for name, column in self.items()})


MultiBatch = dict[str, ModuleBatch]


@dataclass
class TrainingData:
    """What is handed to an update: one of these.

    Attributes:
        batch: columns by name, or such mappings by the id of their module.
        batches: several of those, which are joined.
        batch_refs: references to those in Ray's store.
        episodes: a sequence of `SingleAgentEpisode`, of RLlib's episodes of several agents, or of mappings, each the
            columns `[step, ...]` of an episode; or such sequences of mappings by id.
        episodes_refs: references to those in Ray's store.
        data_iterators: iterables of batches.
    """

    batch: Any = None
    batches: Any = None
    batch_refs: Any = None
    episodes: Any = None
    episodes_refs: Any = None
    data_iterators: Any = None

    def by_module(
        self,
        device: torch.device,
        ids: Collection[str] = (),
        num_iters: int | None = None,
        of_episodes: EpisodeColumns | None = None,
    ) -> MultiBatch:
        """Return the columns by module; a module without rows is left out.

        Args:
            device: of the tensors; floats become float32.
            ids: of the modules; columns that name none are those of the only one, or of `default_policy`.
            num_iters: batches to take of each iterator.
            of_episodes: what is asked of episodes.

        Raises:
            ConfigError: none or several of them, nothing in it, or columns that do not fit each other; a `ValueError`.
        """
        given = {name: value for name, value in vars(self).items() if value is not None}
        if len(given) != 1:
            raise ConfigError(
                f"an update takes one of batch, batches and episodes, and got {' and '.join(given) or 'none'}"
            )
        ((form, value),) = given.items()
        if form == "data_iterators":
            if num_iters is None:
                raise ConfigError("data_iterators take num_iters, the batches of each")
            pieces = [batch for iterator in value for batch in islice(iter(iterator), num_iters)]
        elif form == "batch":
            pieces = [value]
        elif form == "batches":
            pieces = list(value)
        else:
            pieces = _of_ray(value) if form.endswith("_refs") else _pieces(value)
        return _rows_by_module(pieces, form, device, ids, of_episodes or EpisodeColumns())

    def whole_episodes(self) -> list[Any]:
        """Return the episodes that are no columns yet."""
        several = self.episodes if isinstance(self.episodes, list | tuple) else ()
        return [episode for episode in several if is_episode(episode)]

    def env_steps(self) -> int:
        """Return how many steps of envs it is of; 0 where no batch says it."""
        whole = self.whole_episodes()
        if whole:
            return sum(len(episode) for episode in whole)
        pieces = [self.batch] if self.batches is None else self.batches
        return sum(piece.env_steps() for piece in pieces if hasattr(piece, "env_steps"))


@dataclass
class Shard(TrainingData):
    """The rows of one learner of a group, which may be none; tensors by module already, in `batch`.

    Attributes:
        steps: of envs.
    """

    steps: int = 0

    def env_steps(self) -> int:
        """Return how many steps of envs it is of."""
        return self.steps

    def by_module(self, *_: Any) -> MultiBatch:
        """Return them."""
        data: MultiBatch = self.batch
        return data


def check_ids(data: Iterable[str], there: Collection[str]) -> None:
    """Refuse data for a module that is not there.

    Raises:
        ConfigError: there is one.
    """
    for module_id in data:
        if module_id not in there:
            raise ConfigError(
                f"the batch is for a module {module_id!r}, which is not here{did_you_mean(module_id, there)}; "
                f"there are {', '.join(there) or 'none'}"
            )


def _of_ray(references: Any) -> list[Any]:
    import ray

    objects = ray.get(list(references))
    return [piece for several in objects for piece in (several if isinstance(several, list) else [several])]


def _rows_by_module(
    pieces: list[Any], form: str, device: torch.device, ids: Collection[str], of_episodes: EpisodeColumns
) -> MultiBatch:
    home = next(iter(ids)) if len(ids) == 1 else DEFAULT_MODULE_ID
    plain: list[Any] = []
    for piece in pieces:
        if is_episode(piece):
            plain += [{module_id: of_episodes.of(own)} for module_id, own in of_agents(piece, home)]
        else:
            plain.append(piece)
    joined = _joined([_by_module(piece, form, device, home) for piece in plain])
    data = {module_id: columns for module_id, columns in joined.items() if columns.rows}
    if not data:
        raise ConfigError(f"the update has no rows: {form} is empty")
    return data


def _pieces(episodes: Any) -> list[Any]:
    if isinstance(episodes, Mapping):
        return [{module_id: episode} for module_id, several in episodes.items() for episode in several]
    return list(episodes)


def _by_module(batch: Any, form: str, device: torch.device, home: str) -> MultiBatch:
    if not hasattr(batch, "items"):  # a TensorDict is no Mapping
        raise ArgumentTypeError(f"{form}: expected columns by name, not {type(batch).__name__}")
    entries = dict(batch.items())
    nested = [name for name, value in entries.items() if hasattr(value, "items")]
    if not nested:
        return {home: _columns(entries, form, device)}
    if len(nested) != len(entries):
        raise ConfigError(f"{form}: {nested[0]!r} holds columns, and others are columns; give one or the other")
    return {
        module_id: _columns(dict(columns.items()), f"{form}[{module_id!r}]", device)
        for module_id, columns in entries.items()
    }


def _columns(columns: Mapping[str, Any], place: str, device: torch.device) -> ModuleBatch:
    tensors = ModuleBatch({name: _tensor(value, f"{place}[{name!r}]", device) for name, value in columns.items()})
    rows = {name: len(column) for name, column in tensors.items()}
    if len(set(rows.values())) > 1:
        text = ", ".join(f"{name} {count}" for name, count in rows.items())
        raise ConfigError(f"{place}: columns have other numbers of rows: {text}")
    return tensors


def _tensor(value: Any, place: str, device: torch.device) -> Tensor:
    try:
        tensor = value if isinstance(value, Tensor) else torch.as_tensor(writeable(np.asarray(value)))
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{place} is no array of numbers: {error}") from None
    if not tensor.dim():
        raise ConfigError(f"{place} is a single number; a column has one for each row")
    if tensor.dtype == torch.float64:
        tensor = tensor.to(device, torch.float32)
    return tensor.detach().to(device)


def writeable(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array, or a copy of one that may not be written to, such as those of Ray's store."""
    return values if values.flags.writeable else values.copy()


def _joined(pieces: Sequence[MultiBatch]) -> MultiBatch:
    if len(pieces) == 1:
        return pieces[0]
    joined: MultiBatch = {}
    for module_id in dict.fromkeys(name for piece in pieces for name in piece):
        several = [piece[module_id] for piece in pieces if piece.get(module_id)]
        if any(set(columns) != set(several[0]) for columns in several):
            raise ConfigError(f"module {module_id!r}: the pieces have other columns")
        names = several[0] if several else ()
        joined[module_id] = ModuleBatch({name: torch.cat([columns[name] for columns in several]) for name in names})
    return joined


def minibatches(
    data: MultiBatch, steps: int, size: int | None, epochs: int, generator: torch.Generator | None
) -> Iterator[MultiBatch]:
    """Yield minibatches: `steps` for each epoch, in which every row comes once.

    A module whose rows are used up is left out of the rest of an epoch.

    Args:
        data: columns by module.
        steps: of an epoch; may be more than the rows here make.
        size: rows of a minibatch, for each module; None for all.
        epochs: how often to go through the rows.
        generator: shuffles the rows before each epoch; None keeps their order.
    """
    for _ in range(epochs):
        shuffled = data
        if generator is not None:
            shuffled = {name: columns.take(_order(columns, generator)) for name, columns in data.items()}
        split = {name: _split(columns, size) for name, columns in shuffled.items()}
        for number in range(steps):
            yield {name: parts[number] for name, parts in split.items() if number < len(parts)}


def _order(columns: ModuleBatch, generator: torch.Generator) -> Tensor:
    order = torch.randperm(columns.rows, generator=generator)
    return order.to(next(iter(columns.values())).device)


def _split(columns: ModuleBatch, size: int | None) -> list[ModuleBatch]:
    """Return parts of so many rows, the last of what is left; all views are made at once."""
    if size is None or size >= columns.rows:
        return [columns]
    parts = zip(*(torch.split(column, size) for column in columns.values()), strict=True)
    names = tuple(columns)
    return [ModuleBatch(zip(names, part, strict=True)) for part in parts]
