"""The data of a dataset as Minari keeps them with Arrow: for each episode a folder `N` with one table, in one file.

A table has a row for each observation, so that in the last one everything else is padding. What is written is `arrow`,
Arrow's own file, or `parquet`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.envs import Packed
from rlcore.errors import ConfigError, StorageError
from rlcore_plugin_datasets.episode import ARRAYS, Episode
from rlcore_plugin_datasets.leaves import flat_of, tree_of

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Array

_INFOS: Final = "infos"
_SHAPE: Final = "shape"  # of a number of each step that is an array, in the metadata of its field
_OF_EPISODE: Final = "metadata.json"


def write_episodes(
    name: str, folder: Path, space: gymnasium.Space[Any], episodes: Iterator[Episode], compression: int | None
) -> tuple[int, int]:
    """Write a folder for each episode, and return how many episodes and steps these were.

    Raises:
        ConfigError: pyarrow is missing, or Arrow's own files are to be compressed, for which they know no gzip.
        OSError: something cannot be written.
    """
    _import()
    from pyarrow import dataset as tables

    form, options = _how(name, compression)
    count = steps = 0
    for episode in episodes:
        place = folder / str(count)
        tables.write_dataset(_table(episode, space), place, format=form, file_options=options)
        own = {"id": count, "total_steps": len(episode)} | ({} if episode.seed is None else {"seed": episode.seed})
        (place / _OF_EPISODE).write_text(json.dumps(own), encoding="utf-8")
        count, steps = count + 1, steps + len(episode)
    return count, steps


def _how(name: str, compression: int | None) -> tuple[Any, Any]:
    """Return the format of the files, and how they are written."""
    from pyarrow import dataset as tables

    if name == "parquet":
        form = tables.ParquetFileFormat()
        how = {"compression": "gzip", "compression_level": compression} if compression else {"compression": "none"}
        return form, form.make_write_options(**how)
    if compression is not None:
        raise ConfigError("--compress: Arrow's own files know no gzip; compress 'hdf5' or 'parquet'")
    return tables.IpcFileFormat(), None


def read_episodes(
    name: str, folder: Path, space: gymnasium.Space[Any], count: int, infos: bool = False
) -> Iterator[Episode]:
    """Yield the episodes of a folder in their order.

    Raises:
        ConfigError: pyarrow is missing.
        StorageError: an episode is damaged or missing; names it.
    """
    arrow = _import()
    from pyarrow import dataset as tables

    for number in range(count):
        place = folder / str(number)
        try:
            own = json.loads((place / _OF_EPISODE).read_bytes())
            table = tables.dataset(_files(name, place), format=name).to_table().combine_chunks()
            columns = {column: _chunk(arrow, table[column]) for column in table.column_names}
            yield _episode(columns, space, own.get("seed"), infos)
        except (OSError, KeyError, ValueError, TypeError, AttributeError, arrow.ArrowException) as error:
            raise StorageError(
                f"{folder}, episode {number} cannot be read: {error}; its file is damaged, missing, or was cut off"
            ) from None


def data_files(name: str, folder: Path, count: int) -> list[Path]:
    """Return the files of the data, and those of what is said of each episode."""
    return [
        file
        for number in range(count)
        for file in (folder / str(number) / _OF_EPISODE, *_files(name, folder / str(number)))
    ]


def _files(name: str, place: Path) -> list[Path]:
    return sorted(place.glob(f"*.{name}"))


def _import() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ConfigError(
            "Arrow's files are read and written by pyarrow, which is not installed: pip install "
            "'rlcore-plugin-datasets[arrow]'"
        ) from None
    return pyarrow


def _table(episode: Episode, space: gymnasium.Space[Any]) -> Any:
    import pyarrow

    if isinstance(space, Packed):
        leaves = {
            name: space.array(episode.observations, name).astype(leaf.dtype) for name, leaf in space.leaves.items()
        }
        observations = _struct(tree_of(leaves), 0)
    else:
        observations = _column(episode.observations, 0)
    columns = {"observations": observations}
    columns |= {name: _column(getattr(episode, name), 1) for name in ARRAYS[1:]}
    if episode.infos:
        columns[_INFOS] = _struct(tree_of(episode.infos, "/"), 0)
    return pyarrow.table(columns)


def _struct(tree: Mapping[str, Any], pad: int) -> Any:
    """Return arrays within each other; what has a shape says it, as the format keeps it flat."""
    import pyarrow

    arrays = [_struct(part, pad) if isinstance(part, dict) else _column(part, pad) for part in tree.values()]
    fields = [
        pyarrow.field(name, array.type, metadata=None if isinstance(part, dict) else _shape_of(part))
        for (name, part), array in zip(tree.items(), arrays, strict=True)
    ]
    return pyarrow.StructArray.from_arrays(arrays, fields=fields)


def _shape_of(array: Array) -> dict[str, str] | None:
    return {_SHAPE: ",".join(str(size) for size in array.shape[1:])} if array.ndim > 1 else None


def _column(array: Array, pad: int) -> Any:
    """Return the array of a column: a number of each step, or so many of them in a row."""
    import pyarrow

    if array.dtype.kind == "O":  # texts
        return pyarrow.array([*array.tolist(), *[""] * pad])
    if pad:
        array = np.concatenate([array, np.zeros((pad, *array.shape[1:]), array.dtype)])
    if array.ndim == 1:
        return pyarrow.array(array)
    flat = np.ascontiguousarray(array).reshape(len(array), -1)
    kind = pyarrow.list_(pyarrow.from_numpy_dtype(array.dtype), list_size=flat.shape[1])
    return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(flat.reshape(-1)), type=kind)


def _chunk(arrow: Any, column: Any) -> Any:
    """Return a column of a table in one piece."""
    return column.combine_chunks() if isinstance(column, arrow.ChunkedArray) else column


def _episode(columns: Mapping[str, Any], space: gymnasium.Space[Any], seed: Any, infos: bool) -> Episode:
    observations = columns["observations"]
    steps = len(observations) - 1
    if isinstance(space, Packed):
        found = flat_of(_leaves(observations))
        leaves = {
            name: _numbers(found[name], f"observations (leaf {name!r})").reshape(steps + 1, *(leaf.shape or ()))
            for name, leaf in space.leaves.items()
        }
        seen = space.pack(leaves)
    else:
        seen = _numbers(observations, "observations").reshape(steps + 1, *(space.shape or ()))
    arrays = {name: _numbers(columns[name], name)[:steps] for name in ARRAYS[1:]}
    for name in ("terminations", "truncations"):
        arrays[name] = arrays[name].astype(bool)
    kept = _infos(columns[_INFOS]) if infos and _INFOS in columns else {}
    return Episode(seen, **arrays, seed=None if seed is None else int(seed), infos=kept)


def _leaves(array: Any) -> dict[str, Any]:
    """Return the arrays of a struct by name, those within each other in dicts."""
    import pyarrow

    if not isinstance(array, pyarrow.StructArray):
        raise ValueError("observations are one array, and their space is a dict or a tuple")
    parts = {field.name: array.field(place) for place, field in enumerate(array.type)}
    return {name: _leaves(part) if isinstance(part, pyarrow.StructArray) else part for name, part in parts.items()}


def _infos(array: Any) -> dict[str, Array]:
    """Return the infos of each step, by names with `/` between a dict and what it holds."""
    import pyarrow

    found: dict[str, Array] = {}
    for place, field in enumerate(array.type):
        part = array.field(place)
        if isinstance(part, pyarrow.StructArray):
            found |= {f"{field.name}/{name}": values for name, values in _infos(part).items()}
        elif pyarrow.types.is_string(field.type):
            found[field.name] = np.array(part.to_pylist(), dtype=object)
        else:
            numbers = _numbers(part, f"infos {field.name}")
            shape = (field.metadata or {}).get(_SHAPE.encode())
            if shape:
                numbers = numbers.reshape(len(numbers), *(int(size) for size in shape.split(b",")))
            found[field.name] = numbers
    return found


def _numbers(array: Any, what: str) -> Array:
    """Return the numbers of a column, `[row]` or `[row, number]`."""
    import pyarrow

    rows, kind = len(array), array.type
    if pyarrow.types.is_fixed_size_list(kind) or pyarrow.types.is_list(kind):
        array = array.flatten()
    if array.null_count or not (pyarrow.types.is_primitive(array.type)):
        raise ValueError(f"{what} are {kind}, and no numbers")
    numbers: Array = array.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind not in "biuf":
        raise ValueError(f"{what} are {kind}, and no numbers")
    if array.type == kind:
        return numbers
    return numbers.reshape(rows, -1)
