"""HDF5, Arrow and Parquet: each is what Minari writes and reads, and each names what is damaged."""

import json
import shutil
import sys

import h5py
import minari
import numpy as np
import pytest
import tomli_w
import torch
from gymnasium.spaces import Box, Discrete
from minari.data_collector import EpisodeBuffer
from rlcore_plugin_datasets.converting import converted
from rlcore_plugin_datasets.dataset import Dataset, merged, write_dataset
from rlcore_plugin_datasets.episode import ARRAYS, Episode
from rlcore_plugin_datasets.formats import FORMATS
from rlcore_plugin_testing.small_run import TOY_CONFIG

from rlcore import ConfigError
from rlcore.cli import command_line
from rlcore.errors import StorageError

from .test_contracts import SPACES, toy_episodes
from .test_datasets import bench
from .test_leaves import NESTED, TWO_CHOICES, episode_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")
every_format = pytest.mark.parametrize("form", FORMATS)

PLAIN = Box(-9, 9, (2,), np.float32)
PIXELS = Box(0, 255, (2, 3), np.uint8)
FEW = Discrete(3, start=1)
INFOS = {
    "arrays": np.arange(24.0).reshape(4, 2, 3),
    "deep/in": np.arange(4),
    "deep/more/pair": np.arange(8.0).reshape(4, 2),
    "number": np.arange(4) / 2,
    "text": np.array(["", "a", "ä", "longer"], dtype=object),
    "yes": np.array([True, False, False, True]),
}
CASES = {
    "a Box and choices": (PLAIN, FEW, [1, 3, 2]),
    "choices and a Box": (Discrete(5), Box(-1, 1, (2,), np.float64), [[0.5, 0], [1, -1], [0, 0]]),
    "pixels and choices": (PIXELS, TWO_CHOICES, [[1, 0], [2, 1], [3, 1]]),
    "dicts and tuples": (NESTED, FEW, [1, 3, 2]),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def tree(space, packed, episode):
    """Return the observations of an episode as Minari has them."""
    if packed == space:
        return episode.observations
    nested = {name: packed.array(episode.observations, name).astype(leaf.dtype) for name, leaf in packed.leaves.items()}
    both = (nested.pop("both.0"), nested.pop("both.1"))
    return {
        "camera": nested["camera"],
        "body": {"at": nested["body.at"], "grip": nested["body.grip"]},
        "both": both,
    }


def of_case(case):
    """Return packed spaces, and two episodes of different infos and seeds."""
    space, actions, taken = case
    if space == NESTED:
        packed, episode = episode_of(space, actions, taken)
    else:
        packed, last = space, np.arange(3) == 2
        seen = np.stack([space.sample() for _ in range(4)])
        episode = Episode(seen, np.array(taken, actions.dtype), np.arange(3.0), last, np.zeros(3, bool))
    others = {name: values[::-1].copy() for name, values in INFOS.items()}
    return packed, [
        Episode(**{**vars(episode), "seed": seed, "infos": infos}) for seed, infos in ((5, INFOS), (None, others))
    ]


def infos_as_minari_has_them(infos):
    """Return infos of a step in lists, and nested, as its collector makes them."""
    return {
        "arrays": list(infos["arrays"]),
        "deep": {"in": infos["deep/in"].tolist(), "more": {"pair": list(infos["deep/more/pair"])}},
        "number": infos["number"].tolist(),
        "text": infos["text"].tolist(),
        "yes": infos["yes"].tolist(),
    }


def written_by_minari(case, form, root, monkeypatch):
    """Have Minari write the episodes of a case; return its dataset, and the episodes."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(root))
    space, actions, _ = case
    packed, episodes = of_case(case)
    buffers = [
        EpisodeBuffer(
            observations=tree(space, packed, episode),
            actions=episode.actions,
            rewards=episode.rewards.tolist(),
            terminations=episode.terminations.tolist(),
            truncations=episode.truncations.tolist(),
            seed=episode.seed,
            infos=infos_as_minari_has_them(episode.infos),
        )
        for episode in episodes
    ]
    theirs = minari.create_dataset_from_buffers(
        "theirs-v0", buffers, observation_space=space, action_space=actions, data_format=form
    )
    return theirs, packed, episodes


def alike(one, other):
    """Return whether two episodes hold the same values of the same types."""
    arrays = [(getattr(one, name), getattr(other, name)) for name in ARRAYS]
    arrays += [(values, other.infos.get(name, np.empty(0))) for name, values in one.infos.items()]
    return (
        one.infos.keys() == other.infos.keys()
        and one.seed == other.seed
        and all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in arrays)
    )


def check_alike(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert alike(one, other), (one, other)


@every_format
@every_case
def test_what_minari_writes_is_read_with_seeds_and_infos(case, form, tmp_path, monkeypatch):
    _, packed, episodes = written_by_minari(case, form, tmp_path, monkeypatch)
    dataset = Dataset(tmp_path / "theirs-v0")
    assert (dataset.metadata.data_format, dataset.spaces) == (form, (packed, case[1]))
    check_alike(list(dataset.episodes(infos=True)), episodes)
    assert [episode.infos for episode in dataset.episodes()] == [{}, {}], "infos are read where they are wanted"
    assert list(dataset.problems()) == []


@every_format
@every_case
def test_minari_reads_what_is_written_as_it_reads_its_own(case, form, tmp_path, monkeypatch):
    theirs, packed, episodes = written_by_minari(case, form, tmp_path, monkeypatch)
    ours = write_dataset(tmp_path / "ours", (packed, case[1]), episodes, {}, data_format=form)
    read = minari.MinariDataset(ours.folder)
    assert (read.total_episodes, read.total_steps, read.observation_space) == (2, 6, case[0])
    for mine, own in zip(read, theirs, strict=True):
        for name in ARRAYS:
            np.testing.assert_equal(getattr(mine, name), getattr(own, name))
        assert repr(mine.infos) == repr(own.infos)  # arrays of dicts of arrays, of which numpy knows no equality
    assert [found.get("seed") for found in read.storage.get_episode_metadata(range(2))] == [5, None]


@every_format
@pytest.mark.parametrize(("side", "jpeg"), [(32, True), (32, False), (31, True)])
def test_images_are_read_unless_minari_compressed_them(form, side, jpeg, tmp_path, monkeypatch):
    """It takes for images what has at least 32 rows and columns."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    space = Box(0, 255, (side, 40, 3), np.uint8)
    seen = np.stack([space.sample() for _ in range(3)])
    ends = [False, True]
    buffer = EpisodeBuffer(
        observations=seen, actions=np.zeros(2, int), rewards=[0.0] * 2, terminations=ends, truncations=[False] * 2
    )
    minari.create_dataset_from_buffers(
        "theirs-v0", [buffer], observation_space=space, action_space=FEW, data_format=form, jpeg_encoding=jpeg
    )
    if side >= 32 and jpeg:
        with pytest.raises(StorageError, match=r"compressed as JPEG.*jpeg_encoding=False"):
            Dataset(tmp_path / "theirs-v0")
    else:
        (episode,) = Dataset(tmp_path / "theirs-v0").episodes()
        assert np.array_equal(episode.observations, seen)


@every_format
def test_minari_adds_episodes_to_what_was_written(form, tmp_path):
    """Nothing that Minari needs to write on is missing."""
    ours, others = (
        write_dataset(tmp_path / name, SPACES, toy_episodes(2), {}, data_format=form) for name in ("ours", "others")
    )
    minari.MinariDataset(ours.folder).storage.update_from_storage(minari.MinariDataset(others.folder).storage)
    rewards = [episode.rewards.tolist() for episode in Dataset(ours.folder).episodes()]
    assert rewards == [episode.rewards.tolist() for episode in toy_episodes(2)] * 2
    with pytest.raises(StorageError, match="is damaged, as it was cut off or grew"):
        Dataset(ours.folder).verified()


@every_format
@pytest.mark.parametrize("other", FORMATS)
def test_a_dataset_is_converted_to_another_format_and_back(form, other, tmp_path):
    packed, episodes = of_case(CASES["dicts and tuples"])
    episodes = [Episode(**{**vars(e), "infos": {**e.infos, "pair/0": e.infos["yes"]}}) for e in episodes]
    first = write_dataset(tmp_path / "first", (packed, FEW), episodes, {}, data_format=form)
    second = converted(first.folder, tmp_path / "second", None, None, other)
    back = converted(second.folder, tmp_path / "back", None, None, form)
    assert second.metadata.data_format == other
    for dataset in (first, second, back):
        check_alike(list(dataset.episodes(infos=True)), episodes)


@every_format
def test_the_command_records_shows_checks_and_merges(form, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(tomli_w.dumps(TOY_CONFIG))
    record = ["data", "record", "toy.toml", "--random", "--episodes", "2", "--format", form, "--out"]
    assert command_line.main([*record, "one"]) == command_line.main([*record, "two"]) == 0, capsys.readouterr().err
    assert command_line.main(["data", "merge", "one", "two", "--out", "both", "--format", form]) == 0
    assert command_line.main(["data", "check", "both"]) == 0
    assert command_line.main(["data", "show", "both"]) == 0
    told = capsys.readouterr().out
    assert "both: 4 episodes are whole and inside their spaces" in told
    assert f"format        {form}" in told
    one, both = (list(Dataset(folder).episodes()) for folder in ("one", "both"))
    check_alike(both, one * 2)


def test_datasets_of_different_formats_are_merged(tmp_path):
    parts = [write_dataset(tmp_path / form, SPACES, toy_episodes(2), {}, data_format=form) for form in FORMATS]
    both = merged(parts, tmp_path / "both", "arrow")
    check_alike(list(both.episodes()), [*toy_episodes(2)] * 3)


def test_parquet_is_compressed_by_gzip_and_minari_reads_it(tmp_path):
    dataset = write_dataset(tmp_path / "small", SPACES, toy_episodes(2), {}, 6, "parquet")
    assert {column.compression for column in columns_of(data_of(dataset, 0))} == {"GZIP"}
    plain = write_dataset(tmp_path / "plain", SPACES, toy_episodes(2), {}, None, "parquet")
    assert {column.compression for column in columns_of(data_of(plain, 0))} == {"UNCOMPRESSED"}
    check_alike(list(dataset.episodes()), [*toy_episodes(2)])
    assert [episode.rewards.tolist() for episode in minari.MinariDataset(dataset.folder)] == [
        episode.rewards.tolist() for episode in toy_episodes(2)
    ]


def columns_of(file):
    from pyarrow import parquet

    group = parquet.ParquetFile(file).metadata.row_group(0)
    return [group.column(number) for number in range(group.num_columns)]


def test_arrow_has_no_gzip(tmp_path):
    with pytest.raises(ConfigError, match="the format 'arrow' has no gzip"):
        write_dataset(tmp_path / "never", SPACES, toy_episodes(), {}, 3, "arrow")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_an_episode_that_makes_no_table_is_named(form, tmp_path):
    good, short = toy_episodes(2)
    short = Episode(**{**vars(short), "infos": {"number": np.zeros(len(short))}})
    with pytest.raises(StorageError, match=f"episode 1 cannot be written as {form}: .*infos too"):
        write_dataset(tmp_path / "never", SPACES, [good, short], {}, data_format=form)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_a_missing_pyarrow_is_one_message_with_the_extra(form, tmp_path, monkeypatch, capsys):
    dataset = write_dataset(tmp_path / "toy", SPACES, toy_episodes(2), {}, data_format=form)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "rlcore_plugin_datasets.arrow_tables")
    monkeypatch.delattr("rlcore_plugin_datasets.arrow_tables")
    for arguments in (
        ["show", str(dataset.folder)],
        ["convert", str(dataset.folder), "--out", str(tmp_path / "out")],
        ["merge", str(dataset.folder), "--out", str(tmp_path / "out"), "--format", form],
    ):
        assert command_line.main(["data", *arguments]) == 2
        assert "need pyarrow, which is not installed: pip install 'rlcore-plugin-datasets[arrow]'" in (
            capsys.readouterr().err
        )
    assert write_dataset(tmp_path / "hdf5", SPACES, toy_episodes(2), {}).metadata.steps == 20


def data_of(dataset, number):
    """Return the file with the data of an episode."""
    form = dataset.metadata.data_format
    return dataset.file if form == "hdf5" else dataset.folder / str(number) / f"part-0.{form}"


def without_an_episode(dataset):
    if dataset.metadata.data_format == "hdf5":
        with h5py.File(dataset.file, "r+") as data:
            data.move("episode_2", "something_else")
    else:
        shutil.rmtree(dataset.folder / "2")


def cut_off(dataset):
    file = data_of(dataset, 2)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def of_another_count(dataset, number):
    file = dataset.folder / "metadata.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "total_episodes": number}))


DAMAGES = {
    "an episode is missing": (without_an_episode, True),
    "a file was cut off": (cut_off, False),
    "an episode too many": (lambda dataset: of_another_count(dataset, 2), False),
    "an episode too few": (lambda dataset: of_another_count(dataset, 4), False),
}


@every_format
@pytest.mark.parametrize(("damage", "in_hdf5"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_named_with_file_and_episode(damage, in_hdf5, form, tmp_path):
    """A file of HDF5 that was cut off, or has another count, is damaged as a whole."""
    dataset = write_dataset(tmp_path / "toy", SPACES, toy_episodes(3), {}, data_format=form)
    damage(dataset)
    with pytest.raises(StorageError) as raised:
        list(Dataset(dataset.folder).episodes())
    message = str(raised.value)
    assert "toy" in message
    assert str(dataset.file) in message
    if form != "hdf5" or in_hdf5:
        assert "episode 2" in message or "episode 3" in message


@every_format
def test_changed_bytes_are_named_with_their_file(form, tmp_path, capsys):
    dataset = write_dataset(tmp_path / "toy", SPACES, toy_episodes(3), {}, data_format=form)
    file = data_of(dataset, 2)
    content = bytearray(file.read_bytes())
    at = content.find(np.float64(next(iter(list(toy_episodes(3))[2:])).rewards[3]).tobytes())
    content[at] ^= 1  # a reward is another one, and nothing else tells
    file.write_bytes(content)
    assert len(list(dataset.episodes())) == 3
    with pytest.raises(StorageError, match=rf"{file.name} is damaged, as it has other bytes"):
        dataset.verified()
    assert command_line.main(["data", "check", str(dataset.folder)]) != 0
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_an_episode_of_other_steps_than_it_says_is_named(form, tmp_path):
    dataset = write_dataset(tmp_path / "toy", SPACES, toy_episodes(3), {}, data_format=form)
    (dataset.folder / "1/metadata.json").write_text('{"id": 1, "total_steps": 9}')
    with pytest.raises(StorageError, match=r"episode 1 cannot be read: it has 10 steps, and .* says 9"):
        list(dataset.episodes())
    with pytest.raises(StorageError, match=r"toy/1/metadata\.json is damaged"):
        dataset.verified()


@pytest.mark.parametrize("form", ["arrow", "parquet"])
@pytest.mark.parametrize("said", ["[]", "{}", "{", '{"total_steps": 10, "seed": "x"}'])
def test_what_an_episode_says_of_itself_is_checked(said, form, tmp_path):
    dataset = write_dataset(tmp_path / "toy", SPACES, toy_episodes(2), {}, data_format=form)
    (dataset.folder / "1/metadata.json").write_text(said)
    with pytest.raises(StorageError, match="episode 1 cannot be read"):
        list(dataset.episodes())


@pytest.mark.parametrize("form", ["arrow", "parquet"])
@pytest.mark.parametrize(
    ("column", "message"),
    [
        (None, "'rewards'"),
        (["a"] * 11, "rewards are string, and have to be numbers"),
        ([1.0] * 10 + [None], "rewards are double, and have to be numbers, each of them there"),
    ],
)
def test_columns_that_are_no_numbers_are_named(column, message, form, tmp_path):
    import pyarrow
    from rlcore_plugin_datasets import arrow_tables

    dataset = write_dataset(tmp_path / "toy", SPACES, toy_episodes(2), {}, data_format=form)
    file = data_of(dataset, 1)
    table = arrow_tables.read_table(file, [name for name in ARRAYS if name != "rewards"])
    if column is not None:
        table = table.append_column("rewards", pyarrow.array(column))
    file.unlink()
    arrow_tables.write_table(file, table, None)
    with pytest.raises(StorageError, match=f"episode 1 cannot be read: {message}"):
        list(dataset.episodes())


def test_a_buffer_has_the_same_rows_of_every_format(tmp_path):
    rows = []
    for form in FORMATS:
        dataset = write_dataset(tmp_path / form, SPACES, toy_episodes(), {}, data_format=form)
        rows.append(bench(path=str(dataset.folder), open_episodes="truncate")._data.columns())
    assert all(torch.equal(found[key], rows[0][key]) for found in rows for key in rows[0])
    assert len(rows[0]["action"]) == 60
