"""Files of anyone: what they store elsewhere is not read, and what they only claim is not allocated, by any reader."""

import json
import shutil
import tracemalloc

import h5py
import numpy as np
import pyarrow
import pytest
from h5py import h5d, h5p, h5s, h5t
from pyarrow import ipc, parquet
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.episode import Episode

from rlcore.cli import command_line
from rlcore.errors import StorageError

from .test_contracts import SPACES, toy_episodes
from .test_datasets import bench

SECRET = b"the key of another program, 80 bytes".ljust(80)
# more than a reader needs for a toy, and far less than the files claim
MOST_BYTES = 256 << 20


def by_command(*words):
    def read(source, out):
        options = ["--out", str(out)] if words[0] in ("convert", "merge") else []
        code = command_line.main(["data", *words, str(source), *options])
        if code:
            assert not out.exists()
            raise StorageError("refused")

    return read


COMMANDS = {name: by_command(name) for name in ("check", "show", "convert", "merge")}
BUFFERS = {"dataset": lambda source, out: bench(path=str(source))}
every_reader = pytest.mark.parametrize("reader", [*COMMANDS.items(), *BUFFERS.items()], ids=[*COMMANDS, *BUFFERS])


def with_infos(steps=10):
    for episode in toy_episodes(3, steps):
        texts = np.array(["text"] * (steps + 1), dtype=object)
        yield Episode(**{**vars(episode), "infos": {"number": np.arange(steps + 1.0), "text": texts}})


def theirs(folder, form="hdf5", steps=10):
    """Return a dataset as others write it: without checksums."""
    dataset = write_dataset(folder, SPACES, with_infos(steps), {}, data_format=form)
    said(dataset.folder, rlcore={})
    return dataset


def said(folder, **entries):
    file = folder / "metadata.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))


def check_refused(reader, source, tmp_path, capsys, message):
    """Check that a reader refuses a source with that message, and allocates little."""
    name, read = reader
    pool = pyarrow.default_memory_pool()
    before = pool.max_memory()
    tracemalloc.start()
    with pytest.raises(StorageError) as raised:
        read(source, tmp_path / "out")
    peak = tracemalloc.get_traced_memory()[1] + pool.max_memory() - before
    tracemalloc.stop()
    text = capsys.readouterr().err if name in COMMANDS else str(raised.value)
    assert message in text, text
    assert "Traceback" not in text
    assert peak < MOST_BYTES


# each puts an array into a file that HDF5 reads from another place
def external_storage(group, name, like, other):
    raw = other.with_suffix(".txt")
    raw.write_bytes(SECRET * 10)
    group.create_dataset(name, like.shape, like.dtype, external=[(str(raw), 0, like.nbytes)])


def external_link(group, name, like, other):
    with h5py.File(other, "w") as file:
        file["secret"] = like
    group[name] = h5py.ExternalLink(str(other), "/secret")


def soft_link(group, name, like, other):
    group.file[f"episode_2/other {name}"] = like
    group[name] = h5py.SoftLink(f"/episode_2/other {name}")


def virtual_array(group, name, like, other):
    with h5py.File(other, "w") as file:
        file["secret"] = like
    layout = h5py.VirtualLayout(like.shape, like.dtype)
    layout[...] = h5py.VirtualSource(str(other), "secret", shape=like.shape)
    group.create_virtual_dataset(name, layout)


ELSEWHERE = [external_storage, external_link, soft_link, virtual_array]
every_place = pytest.mark.parametrize("put", ELSEWHERE)


@every_reader
@every_place
@pytest.mark.parametrize("name", ["rewards", "observations"])
def test_hdf5_that_is_stored_elsewhere_is_refused(name, put, reader, tmp_path, capsys):
    dataset = theirs(tmp_path / "theirs")
    with h5py.File(dataset.file, "r+") as data:
        like = data[f"episode_1/{name}"][()]
        del data[f"episode_1/{name}"]
        put(data["episode_1"], name, like, tmp_path / "other.h5")
    check_refused(reader, dataset.folder, tmp_path, capsys, "only what a dataset's file stores itself is read")


@every_reader
def test_a_linked_episode_is_refused(reader, tmp_path, capsys):
    dataset, other = theirs(tmp_path / "theirs"), theirs(tmp_path / "other")
    with h5py.File(dataset.file, "r+") as data:
        del data["episode_1"]
        data["episode_1"] = h5py.ExternalLink(str(other.file), "/episode_1")
    check_refused(reader, dataset.folder, tmp_path, capsys, "'episode_1' is a soft or external link")


@pytest.mark.parametrize("name", ["convert", "merge"])
@every_place
@pytest.mark.parametrize("info", ["number", "text"])
def test_infos_that_are_stored_elsewhere_are_refused(info, put, name, tmp_path, capsys):
    dataset = theirs(tmp_path / "theirs")
    with h5py.File(dataset.file, "r+") as data:
        infos = data["episode_1/infos"]
        del infos[info]
        put(infos, info, np.arange(11.0), tmp_path / "other.h5")
    message = "only what a dataset's file stores itself is read"
    check_refused((name, COMMANDS[name]), dataset.folder, tmp_path, capsys, message)


def numbered(data):
    """Write what d3rlpy's second format is."""
    data["num_episodes"], data["version"] = 1, "2.1"
    data["observations_0"], data["actions_0"] = np.zeros((11, 3)), np.zeros((11, 1))
    data["rewards_0"], data["terminated_0"] = np.zeros((11, 1)), False


def flat(data):
    """Write what d3rlpy's first format is."""
    data["observations"], data["actions"] = np.zeros((11, 3)), np.zeros((11, 1))
    data["rewards"], data["terminals"] = np.zeros(11), np.zeros(11)


@every_place
@pytest.mark.parametrize("write", [numbered, flat])
def test_files_of_d3rlpy_that_are_stored_elsewhere_are_refused(write, put, tmp_path, capsys):
    file = tmp_path / "theirs.h5"
    with h5py.File(file, "w") as data:
        write(data)
        for name in [name for name in data if name.startswith(("observations", "rewards"))]:
            like = data[name][()]
            del data[name]
            put(data, name, like, tmp_path / f"{name}.h5")
    message = "only what a dataset's file stores itself is read"
    check_refused(("convert", COMMANDS["convert"]), file, tmp_path, capsys, message)


# each puts an array of rows into a file that stores few of them
def nothing_stored(group, name, rows, like):
    group.create_dataset(name, (rows, *like.shape[1:]), like.dtype)


def one_piece_stored(group, name, rows, like):
    group.create_dataset(name, (rows, *like.shape[1:]), like.dtype, chunks=(1000, *like.shape[1:]), compression="gzip")
    group[name][:1000] = 0


def compressed_twice(group, name, rows, like):
    rows = min(rows, 4_000_000)
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_chunk((rows, *like.shape[1:]))
    plan.set_deflate(9)
    plan.set_deflate(9)
    space = h5s.create_simple((rows, *like.shape[1:]))
    array = h5d.create(group.id, name.encode(), h5t.py_create(like.dtype), space, plan)
    array.write(h5s.ALL, h5s.ALL, np.zeros((rows, *like.shape[1:]), like.dtype))


every_claim = pytest.mark.parametrize("claim", [nothing_stored, one_piece_stored, compressed_twice])
every_count = pytest.mark.parametrize("rows", [10**9, 10**12])


@every_reader
@every_claim
@every_count
def test_hdf5_that_claims_more_than_it_stores_is_refused(rows, claim, reader, tmp_path, capsys):
    dataset = theirs(tmp_path / "theirs")
    with h5py.File(dataset.file, "r+") as data:
        like = data["episode_1/rewards"][()]
        del data["episode_1/rewards"]
        claim(data["episode_1"], "rewards", rows, like)
    said(dataset.folder, total_steps=rows + 20)
    assert dataset.file.stat().st_size < 100_000
    check_refused(reader, dataset.folder, tmp_path, capsys, "episode 1: 'rewards' claims")


@every_count
@pytest.mark.parametrize("write", [numbered, flat])
def test_files_of_d3rlpy_that_claim_more_than_they_store_are_refused(write, rows, tmp_path, capsys):
    file = tmp_path / "theirs.h5"
    with h5py.File(file, "w") as data:
        write(data)
        for name in [name for name in data if name.startswith("rewards")]:
            del data[name]
            data.create_dataset(name, (rows,), "f4")
    check_refused(("convert", COMMANDS["convert"]), file, tmp_path, capsys, "does not store them")


@every_reader
def test_one_episode_under_many_names_is_refused(reader, tmp_path, capsys):
    dataset = theirs(tmp_path / "theirs", steps=5_000)
    with h5py.File(dataset.file, "r+") as data:
        for number in range(3, 300):
            data[f"episode_{number}"] = data["episode_1"]
    said(dataset.folder, total_episodes=300, total_steps=300 * 5_000)
    check_refused(reader, dataset.folder, tmp_path, capsys, "does not store them")


def test_a_text_that_many_rows_lead_to_is_refused(tmp_path, capsys):
    dataset = theirs(tmp_path / "theirs")
    rows = 20_000
    with h5py.File(dataset.file, "r+") as data:
        infos = data["episode_1/infos"]
        infos.create_dataset("one", data=["x" * 60_000], dtype=h5py.string_dtype())
        infos.create_dataset("many", data=["y"] * rows, dtype=h5py.string_dtype())
        one, many = (infos[name].id.get_offset() for name in ("one", "many"))
    content = bytearray(dataset.file.read_bytes())
    content[many : many + 16 * rows] = content[one : one + 16] * rows  # 1.2 GB of text in a file of 1 MB
    dataset.file.write_bytes(content)
    message = "has more text than the file has bytes"
    check_refused(("convert", COMMANDS["convert"]), dataset.folder, tmp_path, capsys, message)


@pytest.mark.parametrize("count", [2, 10**3, 10**9, 10**12, 10**400, -1, 0, "many", 1e999, None])
@pytest.mark.parametrize("key", ["total_episodes", "total_steps"])
@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
def test_counts_of_the_metadata_are_held_against_the_files(form, key, count, tmp_path, capsys):
    dataset = theirs(tmp_path / "theirs", form)
    said(dataset.folder, **{key: count})
    for reader in [("check", COMMANDS["check"]), ("dataset", BUFFERS["dataset"])]:
        check_refused(reader, dataset.folder, tmp_path, capsys, "theirs")


@pytest.mark.parametrize(
    "space",
    [
        {"type": "Box", "dtype": "float32", "shape": [10**10], "low": 0.0, "high": 1.0},
        {"type": "Box", "dtype": "float32", "shape": [10**10], "low": [0.0], "high": [1.0]},
        {"type": "Box", "dtype": "(1000000000,)f4", "shape": [1], "low": [0.0], "high": [1.0]},
        {"type": "Box", "dtype": "O", "shape": [1], "low": [0.0], "high": [1.0]},
        {"type": "Dict", "subspaces": {"a": {"type": "Box", "dtype": "f4", "shape": [10**10], "low": 0, "high": 1}}},
    ],
)
def test_spaces_are_no_larger_than_what_the_metadata_say_of_them(space, tmp_path, capsys):
    dataset = theirs(tmp_path / "theirs")
    said(dataset.folder, observation_space=json.dumps(space))
    for reader in [("check", COMMANDS["check"]), ("dataset", BUFFERS["dataset"])]:
        check_refused(reader, dataset.folder, tmp_path, capsys, "metadata.json cannot be read")


def arrow_file(file, table, **options):
    with file.open("wb") as stream, ipc.new_file(stream, table.schema, options=ipc.IpcWriteOptions(**options)) as out:
        out.write_table(table)


def empty_column(rows):
    return pyarrow.Array.from_buffers(pyarrow.null(), rows, [None])


ARROW = {
    "a column of nothing": lambda file, columns: arrow_file(
        file, pyarrow.table(dict.fromkeys(columns, empty_column(10**9))), allow_64bit=True
    ),
    "lists of nothing": lambda file, columns: arrow_file(
        file,
        pyarrow.table(
            dict.fromkeys(
                columns,
                pyarrow.Array.from_buffers(
                    pyarrow.list_(pyarrow.null(), 0), 10**9, [None], children=[pyarrow.nulls(0)]
                ),
            )
        ),
        allow_64bit=True,
    ),
    "compressed": lambda file, columns: arrow_file(
        file, pyarrow.table(dict.fromkeys(columns, np.zeros(4_000_000))), compression="zstd"
    ),
    "runs": lambda file, columns: arrow_file(
        file,
        pyarrow.table(
            dict.fromkeys(columns, pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([10**9], "int64"), [0.0]))
        ),
        allow_64bit=True,
    ),
    "parquet": lambda file, columns: parquet.write_table(
        pyarrow.table(dict.fromkeys(columns, np.zeros(10_000_000))),
        file,
        max_rows_per_page=10**8,
        row_group_size=10**8,
        data_page_size=1 << 30,
    ),
}


@every_reader
@pytest.mark.parametrize("case", ARROW)
def test_arrow_that_claims_more_than_it_stores_is_refused(case, reader, tmp_path, capsys):
    form = "parquet" if case == "parquet" else "arrow"
    dataset = theirs(tmp_path / "theirs", form)
    file = dataset.folder / "1" / f"part-0.{form}"
    ARROW[case](file, ["observations", "actions", "rewards", "terminations", "truncations"])
    assert file.stat().st_size < 100_000
    check_refused(reader, dataset.folder, tmp_path, capsys, "episode 1 cannot be read: ")


@every_reader
def test_parquet_of_another_file_is_refused(reader, tmp_path, capsys):
    dataset = theirs(tmp_path / "theirs", "parquet")
    file = dataset.folder / "1/part-0.parquet"
    metadata = parquet.ParquetFile(file).metadata
    metadata.set_file_path("../../other.parquet")
    metadata.write_metadata_file(file)
    check_refused(reader, dataset.folder, tmp_path, capsys, "values in another file, '../../other.parquet'")


def test_a_parquet_text_that_many_rows_lead_to_is_refused(tmp_path, capsys):
    dataset = theirs(tmp_path / "theirs", "parquet")
    file = dataset.folder / "1/part-0.parquet"
    rows, ends = 2_000, np.zeros(2_000, bool)
    texts = pyarrow.StructArray.from_arrays([pyarrow.array(["x" * 100_000] * rows)], ["text"])
    columns = {"observations": pyarrow.FixedSizeListArray.from_arrays(np.zeros(3 * rows, np.float32), 3)}
    columns |= {"actions": pyarrow.FixedSizeListArray.from_arrays(np.zeros(rows, np.float32), 1)}
    columns |= {"rewards": np.zeros(rows), "terminations": ends, "truncations": ends, "infos": texts}
    parquet.write_table(pyarrow.table(columns), file, compression="zstd")
    said(dataset.folder, total_steps=20 + rows - 1)
    said(file.parent, total_steps=rows - 1)
    assert file.stat().st_size < 100_000
    reader = ("convert", COMMANDS["convert"])
    check_refused(reader, dataset.folder, tmp_path, capsys, "episode 1 cannot be read: it claims")


LINKS = {"hdf5": ["main_data.hdf5", "metadata.json"], "arrow": ["1", "1/part-0.arrow", "1/metadata.json"]}


@every_reader
@pytest.mark.parametrize(("form", "name"), [(form, name) for form, names in LINKS.items() for name in names])
def test_links_out_of_the_folder_are_refused(form, name, reader, tmp_path, capsys):
    dataset, other = theirs(tmp_path / "theirs", form), theirs(tmp_path / "other", form)
    place = dataset.folder / name
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    place.symlink_to(other.folder / name)
    check_refused(reader, dataset.folder, tmp_path, capsys, f"{place} is a link")
