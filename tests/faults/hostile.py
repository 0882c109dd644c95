"""Checkpoints made to harm, opened under guard by a process of its own.

`hostile.py made FOLDER BACKEND`, or `hostile.py fuzzed FOLDER BACKEND COUNT`. For the torch back end they are made by
hand; for the others every file is spoilt, and every value of their JSON.
"""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import random
import shutil
import sys
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import torch
from rlcore_plugin_dcp.checkpointer import DcpCheckpointer
from rlcore_plugin_testing.faults.bits import forge
from rlcore_plugin_testing.faults.guard import bounds, guard, outcome
from rlcore_plugin_torch.checkpointer import TorchCheckpointer
from rlcore_plugin_torchsnapshot.checkpointer import TorchsnapshotCheckpointer

from rlcore.checkpoints.manifest import scan
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.cli import command_line as cli
from rlcore.errors import RlcoreError, StorageError
from rlcore.state.snapshot import Snapshot
from rlcore.types.progress import Progress

SECONDS, MEMORY = 10, 1 << 30
cli.parser(["ckpt"]).parse_args(["ckpt", "list", "."])  # before the guard: it imports the command, and what finds it
BACKENDS = {"torch": TorchCheckpointer, "torchsnapshot": TorchsnapshotCheckpointer, "dcp": DcpCheckpointer}


class Payload:
    """Unpickled, it writes a file."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.system, (f"touch {self.target}",)


def store_of(run, backend):
    kind = BACKENDS[backend]
    return Store(run / "checkpoints", kind(kind.Config(), None), backend)


def template(run, backend):
    """Make a run folder with one good checkpoint, and return the folder of that."""
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.toml").write_text("")
    state = {"model": {"weight": torch.ones(4, 3), "step": torch.tensor(3)}, "part": {"a": [1, (2.5, None)], 3: "x"}}
    return store_of(run, backend).save(
        Snapshot.of(state, Progress(100, 10), 1.5), Provenance(owners={"model": "some-dist"})
    )


def write_json(file, value):
    file.write_text(value if isinstance(value, str) else json.dumps(value))


def zipped(file, entries, **options):
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def deep(levels, opening="[", closing="]"):
    return opening * levels + closing * levels


def state(value):
    return lambda path: write_json(path / "state.json", value)


def index(**change):
    def make(path):
        content = json.loads((path / "tensors.json").read_text())
        content["model/weight"].update(change)
        write_json(path / "tensors.json", content)

    return make


def tensors(write):
    def make(path):
        write(path / "tensors.pt")

    return make


def manifest(**changes):
    def make(path):
        forge(path, **changes)
        return True

    return make


def raw_manifest(text):
    def make(path):
        (path / "manifest.json").write_text(text)
        return True

    return make


def listed(name, size=1):
    def make(path):
        files = json.loads((path / "manifest.json").read_text())["files"]
        forge(path, files={**files, name: {"size": size, "xxh3": "0" * 32}})
        return True

    return make


def bomb(file):
    zipped(file, {"archive/data/0": bytes(200 << 20), "archive/data/1": b"x" * 8}, compression=zipfile.ZIP_DEFLATED)


def many_entries(file):
    zipped(file, {f"archive/data/{number}": b"" for number in range(5000)})


def patched(offset_of, value):
    """Overwrite numbers of the central directory: sizes and offsets that lie."""

    def write(file):
        content = bytearray(file.read_bytes())
        place = content.rfind(b"PK\x01\x02")
        while place >= 0:
            content[place + offset_of : place + offset_of + 4] = value
            place = content.rfind(b"PK\x01\x02", 0, place)
        file.write_bytes(bytes(content))

    return write


def sparse(name, size):
    """A file of holes; its checksum is right by its size alone in no manifest, so it is refused or bounded."""

    def make(path):
        os.truncate(path / name, size)
        return True

    return make


def replaced(name, make_other):
    def make(path):
        (path / name).unlink()
        make_other(path / name)
        return True

    return make


def payload(folder):
    return pickle.dumps(Payload(folder / "HACKED"))


def pickled_zip(folder):
    content = {"archive/data.pkl": payload(folder), "archive/version": b"3\n", "archive/data/0": bytes(48)}
    return lambda file: zipped(file, content)


WRONG = [None, True, -1, 0, 1.5, "x", [], {}, [[]], {"a": None}, float("inf"), float("nan"), 10**400]
HUGE = (2**62, 2**63, 2**64, 2**31, -(2**63))
NAMES = ("..", ".", "", "/", "../x", "../../../../etc/passwd", "/etc/passwd", "/dev/zero", "a/b", "a\x00b", "\ud800")
# entries of the right type, and numbers that are not used
HARMLESS = {
    "tuples 900 deep",
    *(f"zip compressed size {value}" for value in ("ffffffff", "ffffff7f", "01000000")),
    *(f"evaluation is {value}" for value in ("None (0)", "0 (3)", "1.5 (4)", "inf (10)", "nan (11)")),
    *(f"{name} is {{}} (7)" for name in ("owners", "versions", "domain")),
    *("exact is True (1)", "inexact is [] (6)"),
}
ENTRIES = ("id", "time", "backend", "progress", "evaluation", "owners", "versions", "domain", "exact", "inexact")


def cases(folder):
    """Return name to a function that spoils a checkpoint; it returns True where the manifest is not made to fit."""
    found = {
        "pickle as tensors.pt": tensors(lambda file: file.write_bytes(payload(folder))),
        "pickle in a zip": tensors(pickled_zip(folder)),
        "pickle as torch saves it": tensors(lambda file: torch.save({"a": Payload(folder / "HACKED")}, file)),
        "pickle, the old torch format": tensors(
            lambda file: torch.save(Payload(folder / "HACKED"), file, _use_new_zipfile_serialization=False)
        ),
        "pickle as state": lambda path: (path / "state.json").write_bytes(payload(folder)) and None,
        "pickle as index": lambda path: (path / "tensors.json").write_bytes(payload(folder)) and None,
        "pickle as manifest": lambda path: (path / "manifest.json").write_bytes(payload(folder)),
        "zip bomb": tensors(bomb),
        "zip of many": tensors(many_entries),
        "zip with names that leave": tensors(lambda file: zipped(file, {"../../data/0": b"x", "/data/1": b"x"})),
        "no zip": tensors(lambda file: file.write_bytes(b"x" * 100)),
        "empty tensors": tensors(lambda file: file.write_bytes(b"")),
        "back end to import": manifest(backend="os:system"),
        "back end with a path": manifest(backend="../../evil"),
        "sparse manifest of 4 GiB": sparse("manifest.json", 4 << 30),
        "sparse state of 1 TiB": sparse("state.json", 1 << 40),
        "sparse tensors of 1 TiB": sparse("tensors.pt", 1 << 40),
        "manifest is a pipe": replaced("manifest.json", os.mkfifo),
        "state is a pipe": replaced("state.json", os.mkfifo),
        "tensors is a folder": replaced("tensors.pt", os.mkdir),
        "manifest is /dev/zero": replaced("manifest.json", lambda file: file.symlink_to("/dev/zero")),
        "state is /dev/zero": replaced("state.json", lambda file: file.symlink_to("/dev/zero")),
        "state is /etc/passwd": replaced("state.json", lambda file: file.symlink_to("/etc/passwd")),
        "duplicate keys": raw_manifest('{"format": 1, "format": 1, "checksum": "x"}'),
    }
    return {**found, **hostile_structure(), **hostile_numbers(), **hostile_manifests()}


def hostile_structure():
    """JSON of other shapes."""
    found = {}
    for levels in (10**3, 10**5, 10**6):
        found[f"state {levels} deep"] = state(deep(levels))
        found[f"state {levels} deep, dicts"] = state('{"a":' * levels + "1" + "}" * levels)
        found[f"index {levels} deep"] = lambda path, levels=levels: write_json(path / "tensors.json", deep(levels))
        found[f"manifest {levels} deep"] = raw_manifest(deep(levels))
    nested = value = {}
    for _ in range(900):
        value["$tuple"] = value = {}
    found["tuples 900 deep"] = state({"part": nested})
    tags = ({"$tensor": "x"}, {"$tensor": []}, {"$array": {}}, {"$float": "x"}, {"$float": []}, {"$tuple": 3})
    for number, tag in enumerate(
        (*tags, {"$items": 3}, {"$items": [1]}, {"$items": [[[], 1]]}, {"$items": [[1, 2, 3]]})
    ):
        found[f"tag {number}"] = state({"part": tag})
    for wrong in (None, 3, "x", [], [[1]]):
        found[f"state is {wrong!r}"] = state(json.dumps(wrong))
        found[f"index is {wrong!r}"] = lambda path, wrong=wrong: write_json(path / "tensors.json", json.dumps(wrong))
    return found


def hostile_numbers():
    """Sizes, types and places that lie."""
    found = {}
    for size in HUGE:
        found[f"shape {size}"] = index(shape=[size])
        found[f"shape {size} x 0"] = index(shape=[size, 0])
        found[f"shape {size} x {size}"] = index(shape=[size, size])
        found[f"listed size {size}"] = listed("tensors.pt", size)
        found[f"frames {size}"] = manifest(progress={"frames": size if size >= 2**63 or size < 0 else "x"})
    for shape in ([-1], [-4, -3], [4.0, 3], ["4", 3], [True, 12], None, "43", {"4": 3}, [[4, 3]]):
        found[f"shape {shape!r}"] = index(shape=shape)
    for dtype in ("save", "load", "__builtins__", "float64", "quint8", "os", "", None, 3, ["float32"], "nn.Module"):
        found[f"dtype {dtype!r}"] = index(dtype=dtype)
    for record in ("9", "../0", "/etc/passwd", "", None, 0, [], {}, "data.pkl", "1"):
        found[f"record {record!r}"] = index(record=record)
    for offset, what in ((20, "compressed size"), (24, "size"), (42, "offset"), (10, "method"), (28, "name length")):
        for value in (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x01\x00\x00\x00"):
            found[f"zip {what} {value.hex()}"] = tensors(patched(offset, value))
    return found


def hostile_manifests():
    """Entries of other types, and files that lie elsewhere."""
    found = {}
    for name in NAMES:
        found[f"lists {name!r}"] = listed(name)
    for key in ENTRIES:
        for number, wrong in enumerate(WRONG):
            found[f"{key} is {wrong!r:.20} ({number})"] = manifest(**{key: wrong})
    return found


def spoilt(good, folder):
    """Return name to a function that spoils a file of the back end, or a value of its JSON."""
    found = {}

    def pickled(place):
        with place.open("wb") as stream:
            torch.save({"a": Payload(folder / "HACKED")}, stream)

    for file in sorted(good.iterdir()):
        if file.name in ("manifest.json", "state.json"):
            continue
        other = {
            "pickle": lambda place: place.write_bytes(payload(folder)),
            "pickle as torch saves it": pickled,
            "empty": lambda place: place.write_bytes(b""),
            "zeros": lambda place: place.write_bytes(bytes(place.stat().st_size)),
            "not JSON": lambda place: place.write_text(deep(10**5)),
        }
        for what, write in other.items():
            found[f"{file.name} is {what}"] = lambda path, name=file.name, write=write: write(path / name)
        unlisted = {"pipe": os.mkfifo, "folder": os.mkdir, "link": lambda place: place.symlink_to("/dev/zero")}
        for what, make in unlisted.items():
            found[f"{file.name} is a {what}"] = replaced(file.name, make)
            found[f"{file.name} is a {what} that the manifest leaves out"] = unlisted_file(file.name, make)
        if b"{" in file.read_bytes()[:1]:
            found |= spoilt_values(file)
    return found


def unlisted_file(name, make):
    def spoil(path):
        (path / name).unlink()
        make(path / name)

    return spoil


def spoilt_values(file):
    """Return name to a function that replaces one value of a file of JSON, for each value in turn."""
    content, found = json.loads(file.read_text()), {}
    every = list(enumerate((*WRONG, *HUGE, *NAMES, "torch_save", "object", [0, 2**40], "data.pkl")))
    for first, place in enumerate(places(content)):
        for number, wrong in every[first % 4 :: 4]:

            def spoil(path, place=place, wrong=wrong):
                value = copy.deepcopy(content)
                inside = value
                for key in place[:-1]:
                    inside = inside[key]
                inside[place[-1]] = wrong
                write_json(path / file.name, value)

            found[f"{file.name} {'/'.join(map(str, place))} is {wrong!r:.20} ({number})"] = spoil
    return found


def places(value, path=()):
    """Yield the keys that lead to each value of JSON."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*path, key)
        yield from places(item, (*path, key))


def open_all(run, backend, actions=("list", "show", "verify")):
    """Open a checkpoint in every way there is; return what happened in each."""
    ways = {"load": store_of(run, backend).load_newest, "scan": lambda: scan(run / "checkpoints")}
    for action in actions:
        ways[action] = lambda action=action: command(action, run)
    with bounds(SECONDS, MEMORY):
        return {name: outcome(way, StorageError) for name, way in ways.items()}


def command(action, run):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.main(["ckpt", action, str(run)])
    if code not in (0, 5):
        raise RlcoreError(err.getvalue())


def made(folder, backend):
    """Open every checkpoint made by hand."""
    good = template(folder / "good", backend)
    runs = {}
    chosen = cases(folder) if backend == "torch" else spoilt(good, folder)
    for number, (name, spoil) in enumerate(chosen.items()):
        run = folder / f"run-{number}"
        path = run / "checkpoints" / good.name
        shutil.copytree(folder / "good", run)
        if not spoil(path):
            forge(path)
        runs[name] = run
    breaches = guard(folder)
    results = {}
    for name, run in runs.items():
        results[name] = open_all(run, backend, ("list", "show", "verify") if backend == "torch" else ())
        shutil.rmtree(run)
    good = open_all(folder / "good", backend)
    return {
        "breaches": breaches,
        "results": results,
        "good": good,
        "hacked": hacked(folder),
        "harmless": sorted(HARMLESS),
    }


def hacked(folder):
    return [str(path) for path in folder.rglob("HACKED*")]


def fuzzed(folder, backend, count):
    """Open checkpoints with random damage, most of them with checksums that fit."""
    good = template(folder / "good", backend)
    files = {path.name: path.read_bytes() for path in good.iterdir()}
    breaches = guard(folder)
    tally = {}
    for seed in range(count):
        generator = random.Random(seed)
        name = generator.choice(sorted(files))
        for other, content in files.items():
            (good / other).write_bytes(content)
        (good / name).write_bytes(mutated(files[name], name, generator))
        if name != "manifest.json":
            forge(good)
        for way, what in open_all(folder / "good", backend, ["verify"]).items():
            what = what.partition(":")[0]
            tally[f"{way} {what}"] = tally.get(f"{way} {what}", 0) + 1
            if what not in ("done", "refused"):
                tally.setdefault("unexpected", []).append(f"seed {seed} {name} {way}: {what}")
    return {"breaches": breaches, "tally": tally, "hacked": hacked(folder)}


def mutated(content, name, generator):
    """Return a file with random damage: bytes, or for JSON also values."""
    if name.endswith(("json", "metadata")) and generator.random() < 0.6:
        value = json.loads(content)
        for _ in range(generator.randint(1, 3)):
            value = mutated_value(copy.deepcopy(value), generator)
        return json.dumps(value).encode()
    damaged = bytearray(content)
    for _ in range(generator.randint(1, 8)):
        place = generator.randrange(len(damaged) or 1)
        kind = generator.randrange(4)
        if kind == 0:
            damaged[place : place + 1] = bytes([generator.randrange(256)])
        elif kind == 1:
            del damaged[place : place + generator.choice([1, 4, 100])]
        elif kind == 2:
            damaged[place:place] = generator.randbytes(generator.choice([1, 4, 100]))
        else:
            damaged[place : place + 4] = generator.choice(
                [b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f"]
            )
    return bytes(damaged)


def mutated_value(value, generator):
    if isinstance(value, dict) and value and generator.random() < 0.85:
        key = generator.choice(sorted(value))
        if generator.random() < 0.1:
            value[generator.choice(["$tensor", "$tuple", "$items", "$float", "..", ""])] = value.pop(key)
        else:
            value[key] = mutated_value(value[key], generator)
        return value
    if isinstance(value, list) and value and generator.random() < 0.85:
        place = generator.randrange(len(value))
        value[place] = mutated_value(value[place], generator)
        return value
    return generator.choice([*WRONG, 2**62, -(2**62), "$tensor", {"$tensor": "x"}, {"$items": [[1, 1]]}, value])


if __name__ == "__main__":
    where, backend = Path(sys.argv[2]), sys.argv[3]
    print(json.dumps(made(where, backend) if sys.argv[1] == "made" else fuzzed(where, backend, int(sys.argv[4]))))
