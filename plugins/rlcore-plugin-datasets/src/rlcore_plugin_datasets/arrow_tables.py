"""An episode as a table of Arrow's, as Minari lays it out: a row for each observation, the last one padded.

Needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow
from pyarrow import ipc, parquet, types

from rlcore.envs import Packed
from rlcore_plugin_datasets.arrow_files import read_table as read_table
from rlcore_plugin_datasets.arrow_files import rows_of as rows_of
from rlcore_plugin_datasets.episode import ARRAYS, Episode
from rlcore_plugin_datasets.leaves import tree_of

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Array

ArrowError: Final = pyarrow.ArrowException

_INFOS: Final = "infos"
# of the values of an info that are arrays, in the metadata of its field: a column has them flat
_SHAPE: Final = "shape"


def write_table(file: Path, table: pyarrow.Table, compression: int | None) -> None:
    """Write a table as its file is named: `.arrow` or `.parquet`.

    Args:
        file: must not exist.
        table: of one episode.
        compression: level of gzip, 1 to 9, which `.arrow` has not; None for none.

    Raises:
        OSError: it cannot be written.
    """
    with file.open("xb") as stream:
        if file.suffix == ".parquet":
            how = "gzip" if compression else "none"
            parquet.write_table(table, stream, compression=how, compression_level=compression)
            return
        with ipc.new_file(stream, table.schema) as writer:
            writer.write_table(table)


def table_of(episode: Episode, space: gymnasium.Space[Any]) -> pyarrow.Table:
    """Return the table of an episode.

    Args:
        episode: to write.
        space: of one observation.

    Raises:
        ArrowError: an array has another length than the others, or infos are neither numbers nor texts.
    """
    if isinstance(space, Packed):
        leaves = {
            name: space.array(episode.observations, name).astype(leaf.dtype) for name, leaf in space.leaves.items()
        }
        columns = {"observations": _struct(tree_of(leaves))}
    else:
        columns = {"observations": _column(episode.observations)}
    columns |= {name: _column(_padded(getattr(episode, name))) for name in ARRAYS[1:]}
    if episode.infos:
        columns[_INFOS] = _struct(tree_of(episode.infos, "/"))
    return pyarrow.table(columns)


def episode_of(table: pyarrow.Table, space: gymnasium.Space[Any], seed: int | None) -> Episode:
    """Return the episode of a table.

    Args:
        table: of one episode.
        space: of one observation.
        seed: of the episode.

    Raises:
        KeyError: a column or a leaf is missing.
        ValueError: a column holds something else than it should.
    """
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    steps = {name: _numbers(name, columns[name])[:-1] for name in ARRAYS[1:]}
    for name in ("terminations", "truncations"):
        steps[name] = steps[name].astype(bool)
    kept = dict(_infos(columns[_INFOS])) if _INFOS in columns else {}
    return Episode(_observations(columns["observations"], space), **steps, seed=seed, infos=kept)


def _struct(tree: Mapping[str, Any]) -> pyarrow.StructArray:
    """Return arrays within each other; an array of each row says its shape."""
    arrays, fields = [], []
    for name, part in tree.items():
        nested = isinstance(part, Mapping)
        array = _struct(part) if nested else _column(part)
        shape = {} if nested or part.ndim == 1 else {_SHAPE: ",".join(map(str, part.shape[1:]))}
        arrays.append(array)
        fields.append(pyarrow.field(name, array.type, metadata=shape))
    return pyarrow.StructArray.from_arrays(arrays, fields=fields)


def _column(array: Array) -> pyarrow.Array:
    """Return a column: a number or a text of each row, or so many numbers of each."""
    if array.ndim == 1:
        return pyarrow.array(array)
    flat = np.ascontiguousarray(array).reshape(-1)
    return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(flat), int(np.prod(array.shape[1:])))


def _padded(array: Array) -> Array:
    return np.concatenate([array, np.zeros((1, *array.shape[1:]), array.dtype)])


def _observations(array: pyarrow.Array, space: gymnasium.Space[Any]) -> Array:
    if not isinstance(space, Packed):
        return _numbers("observations", array).reshape(len(array), *(space.shape or ()))
    leaves = {name: part for name, _, part in _leaves("observations", array, ".")}
    return space.pack(
        {
            name: _numbers(f"observations (leaf {name!r})", leaves[name]).reshape(len(array), *(leaf.shape or ()))
            for name, leaf in space.leaves.items()
        }
    )


def _infos(array: pyarrow.Array) -> Iterator[tuple[str, Array]]:
    """Yield the infos of each row, by names with `/` between a dict and what it holds."""
    for name, field, part in _leaves(_INFOS, array, "/"):
        if types.is_string(field.type) and not part.null_count:
            yield name, np.array(part.to_pylist(), dtype=object)
            continue
        numbers = _numbers(f"infos {name!r}", part)
        shape = (field.metadata or {}).get(_SHAPE.encode())
        yield name, numbers if shape is None else numbers.reshape(len(part), *map(int, filter(None, shape.split(b","))))


def _leaves(name: str, array: pyarrow.Array, between: str) -> Iterator[tuple[str, pyarrow.Field, pyarrow.Array]]:
    """Yield what lies within each other in a struct, by the names on the way there."""
    if not types.is_struct(array.type) or array.null_count:
        raise ValueError(f"{name} are {array.type}, and should have several parts in each row")
    for place, field in enumerate(array.type):
        part = array.field(place)
        if types.is_struct(field.type):
            below = _leaves(field.name, part, between)
            yield from ((f"{field.name}{between}{path}", own, leaf) for path, own, leaf in below)
        else:
            yield field.name, field, part


def _numbers(name: str, array: pyarrow.Array) -> Array:
    """Return the numbers of a column, `[row]` or `[row, number]`."""
    values = array.flatten() if types.is_fixed_size_list(array.type) else array
    numbers: Array = values.to_numpy(zero_copy_only=False)
    if array.null_count or values.null_count or numbers.dtype.kind not in "biuf":
        raise ValueError(f"{name} are {array.type}, and have to be numbers, each of them there")
    return numbers if values is array else numbers.reshape(len(array), -1)
