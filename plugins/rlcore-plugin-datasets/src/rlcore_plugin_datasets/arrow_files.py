"""Tables from files of Arrow and Parquet of anyone: no larger than such a file can store, of numbers and texts.

Needs pyarrow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow
from pyarrow import ipc, parquet, types

# Parquet stores equal values once, with how often they come
_MOST_BYTES_OF_ONE: Final = 10_000
_ROWS_AT_ONCE: Final = 1_024
# the column that may have texts
_TEXTS: Final = "infos"
# numbers of fields in Arrow's tables of flatbuffers
_BATCHES_OF_FOOTER, _HEADER_OF_MESSAGE, _COMPRESSION_OF_BATCH = 3, 2, 3
_BLOCK_BYTES: Final = 24


def rows_of(file: Path, wanted: Sequence[str]) -> int:
    """Return how many rows the table of a file has, by what the file stores.

    Args:
        file: `.arrow` or `.parquet`.
        wanted: columns that it is about.

    Raises:
        OSError, ArrowError, ValueError: it cannot be read, is damaged, or claims more than it stores.
    """
    if file.suffix == ".parquet":
        with parquet.ParquetFile(file) as source:
            _check_parquet(file, source, wanted)
            return int(source.metadata.num_rows)
    return int(_arrow_table(file, wanted).num_rows)


def read_table(file: Path, wanted: Sequence[str]) -> pyarrow.Table:
    """Return columns of the table of a file, every value in its place; a column that is not there is left out.

    Args:
        file: `.arrow` or `.parquet`.
        wanted: names of columns.

    Raises:
        OSError, ArrowError, ValueError: it cannot be read, is damaged, or claims more than it stores.
    """
    if file.suffix == ".parquet":
        with parquet.ParquetFile(file) as source:
            _check_parquet(file, source, wanted)
            if _TEXTS in wanted:
                table = pyarrow.Table.from_batches(_parquet_batches(file, source, wanted))
            else:  # as large as its rows say
                table = source.read(columns=list(wanted))
    else:
        table = _arrow_table(file, wanted)
    table.validate(full=True)  # offsets and lengths of a damaged file may point outside of it
    return table


def _arrow_table(file: Path, wanted: Sequence[str]) -> pyarrow.Table:
    """Return a table whose columns are parts of the content of the file."""
    content = file.read_bytes()
    with ipc.open_file(pyarrow.py_buffer(content)) as source:
        fields = [place for place, name in enumerate(source.schema.names) if name in wanted]
        _check_types(source.schema, wanted)
    if _is_compressed(content):
        raise ValueError("it is compressed, which is not read here; write it uncompressed, or as Parquet")
    with ipc.open_file(pyarrow.py_buffer(content), options=ipc.IpcReadOptions(included_fields=fields)) as source:
        table = source.read_all()
    _check_size(file, table.nbytes, len(content))
    return table


def _parquet_batches(file: Path, source: parquet.ParquetFile, wanted: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
    """Yield some rows at a time, as long as they are not more than the file can store: a text may come often."""
    most, there = file.stat().st_size * _MOST_BYTES_OF_ONE, 0
    for batch in source.iter_batches(_ROWS_AT_ONCE, columns=list(wanted), use_threads=False):
        there += batch.nbytes
        _check_size(file, there, most)
        yield batch


def _check_parquet(file: Path, source: parquet.ParquetFile, wanted: Sequence[str]) -> None:
    """Refuse a file that tells of values in other files, or of more than it can store."""
    _check_types(source.schema_arrow, wanted)
    metadata = source.metadata
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            if other := metadata.row_group(group).column(place).file_path:
                raise ValueError(f"it has values in another file, {other!r}, and only its own are read")
    row_bytes = sum(_value_bytes(field.type) for field in source.schema_arrow if field.name in wanted)
    _check_size(file, metadata.num_rows * row_bytes, file.stat().st_size * _MOST_BYTES_OF_ONE)


def _check_size(file: Path, claimed: int, most: int) -> None:
    if claimed > most:
        raise ValueError(
            f"it claims {claimed:,} bytes and has {file.stat().st_size:,}, which cannot store them; it is damaged, or "
            "made to fill the memory"
        )


def _check_types(schema: pyarrow.Schema, wanted: Sequence[str]) -> None:
    for field in schema:
        if field.name in wanted:
            _check_type(field.name, field.type)


def _check_type(name: str, kind: pyarrow.DataType) -> None:
    """Refuse columns that need no bytes for a value, or are no numbers and texts."""
    if types.is_struct(kind):
        for field in kind:
            _check_type(f"{name}.{field.name}", field.type)
        return
    plain = kind.value_type if types.is_fixed_size_list(kind) and kind.list_size else kind
    is_text = types.is_string(kind) and name.startswith(f"{_TEXTS}.")
    if not (is_text or types.is_integer(plain) or types.is_floating(plain) or types.is_boolean(plain)):
        raise ValueError(f"{name} are {kind}, and have to be numbers, each of them there")


def _value_bytes(kind: pyarrow.DataType) -> int:
    """Return how many bytes a value takes in memory; none of a text, which says so itself."""
    if types.is_struct(kind):
        return sum(_value_bytes(field.type) for field in kind)
    if types.is_fixed_size_list(kind):
        return int(kind.list_size) * _value_bytes(kind.value_type)
    return 0 if types.is_string(kind) else max(kind.bit_width // 8, 1)


def _is_compressed(content: bytes) -> bool:
    """Return whether a batch of a file in Arrow's format is compressed: its buffers would say their size themselves.

    The format: https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format

    Raises:
        ValueError: the file ends early.
    """
    try:
        end = len(content) - len(b"ARROW1") - 4
        footer = _root(content, end - _number(content, end))
        batches = _field(content, footer, _BATCHES_OF_FOOTER)
        if not batches:
            return False
        batches += _number(content, batches)
        places = (batches + 4 + _BLOCK_BYTES * place for place in range(_number(content, batches)))
        return any(_is_compressed_batch(content, struct.unpack_from("<q", content, place)[0]) for place in places)
    except struct.error as error:
        raise ValueError(f"it ends early ({error})") from None


def _is_compressed_batch(content: bytes, message: int) -> bool:
    begin = message + (8 if content[message : message + 4] == b"\xff" * 4 else 4)  # files of old have no such mark
    header = _field(content, _root(content, begin), _HEADER_OF_MESSAGE)
    return bool(header and _field(content, header + _number(content, header), _COMPRESSION_OF_BATCH))


def _root(content: bytes, place: int) -> int:
    return place + _number(content, place)


def _field(content: bytes, table: int, number: int) -> int:
    """Return where a field of a table of flatbuffers lies; 0 of one that is not there."""
    fields = table - _number(content, table)
    offset = 4 + 2 * number
    if offset >= struct.unpack_from("<H", content, fields)[0]:
        return 0
    distance = struct.unpack_from("<H", content, fields + offset)[0]
    return table + distance if distance else 0


def _number(content: bytes, place: int) -> int:
    number: int = struct.unpack_from("<i", content, place)[0]
    return number
