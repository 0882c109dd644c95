"""Reads back what W&B was told, from the files of its offline mode."""

import json
import struct
import time

from wandb.proto import wandb_internal_pb2


def records_of(file):
    """Yield the records of a `.wandb` file: blocks of 32 KiB with parts of records after checksum, length and type."""
    content, position, record = file.read_bytes(), 7, b""
    assert content.startswith(b":W&B")
    while position + 7 <= len(content):
        if (left := 2**15 - position % 2**15) < 7:
            position += left
            continue
        _, length, kind = struct.unpack("<IHB", content[position : position + 7])
        if kind == 0:
            return
        record += content[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield wandb_internal_pb2.Record.FromString(record)
            record = b""


def offline(folder):
    """Yield (folder of W&B, record) of every opening of a run, in order, once W&B's own process has written it all."""
    for place in sorted((folder / "wandb").glob("offline-run-*")):
        (file,) = place.glob("*.wandb")
        for _ in range(200):
            records = list(records_of(file))
            if records and records[-1].WhichOneof("record_type") == "exit":
                break
            time.sleep(0.05)
        yield from ((place, record) for record in records)


def id_of(place):
    """The id of the run that a folder of W&B belongs to."""
    return place.name.rpartition("-")[2]


def history(folder):
    """Yield (folder of W&B, row) of every row; a row is values by name."""
    for place, record in offline(folder):
        if record.WhichOneof("record_type") == "history":
            row = {}
            for item in record.history.item:
                row["/".join(item.nested_key) or item.key] = json.loads(item.value_json)
            yield place, row


def whole_rows(folder):
    """Yield (folder of W&B, step, name, value); what W&B nests under a name is one value."""
    for place, row in history(folder):
        step = row.pop("frames")
        values = {}
        for key, value in row.items():
            name, _, part = key.rpartition("/")
            if key.startswith("_"):
                continue
            if part in ("_type", "bins", "values", "path", "size", "sha256", "format", "width", "height"):
                values.setdefault(name, {})[part] = value
            else:
                values[key] = value
        yield from ((place, int(step), name, value) for name, value in values.items())
