"""Files in Minari's format: written whole, read back, read by Minari itself, and refused where they are damaged."""

import json
import math
import re

import h5py
import minari
import numpy as np
import pytest
import tomli_w
import torch
from gymnasium.spaces import Box, Discrete
from pydantic import BaseModel
from rlcore_plugin_datasets.buffer import DatasetBuffer
from rlcore_plugin_datasets.dataset import Dataset, merged, write_dataset
from rlcore_plugin_datasets.episode import Episode
from rlcore_plugin_datasets.spaces import space_text
from rlcore_plugin_testing.contracts.data_buffer import COLLECTS_NOTHING
from rlcore_plugin_testing.small_run import TOY_CONFIG, make_run

from rlcore import ConfigError
from rlcore.cli import command_line
from rlcore.config.common_keys import with_discount_of
from rlcore.errors import StorageError

from .test_contracts import SPACES, toy_episodes

CARTPOLE = (Box(-1, 1, (2,), np.float32), Discrete(3, start=1))


def changed(episode, **arrays):
    return Episode(**{**vars(episode), **arrays})


@pytest.fixture
def toy(tmp_path):
    return write_dataset(tmp_path / "toy", SPACES, toy_episodes(), {"rlcore": {"env": "toy"}})


def bench(**keys):
    sections = {**COLLECTS_NOTHING, "buffer": {"use": "testing:toy-data"}, "hook": [{"use": "testing:toy"}]}
    context = make_run(sections=sections).trainer.hooks.hooks[0].instance.context
    return DatasetBuffer(DatasetBuffer.Config(**{"minibatch_size": 8, **keys}), context.for_component("buffer", "d"))


def test_what_was_written_is_read_back_and_minari_reads_the_same(toy):
    theirs = minari.MinariDataset(toy.folder)
    assert (theirs.total_episodes, theirs.total_steps) == (6, 60)
    assert (theirs.observation_space, theirs.action_space) == SPACES
    assert theirs.id == "toy-v0"
    seeds = [found["seed"] for found in theirs.storage.get_episode_metadata(range(6))]
    for mine, written, read, seed in zip(toy.episodes(), toy_episodes(), theirs, seeds, strict=True):
        assert mine.seed == written.seed == seed
        for name in ("observations", "actions", "rewards", "terminations", "truncations"):
            assert np.array_equal(getattr(mine, name), getattr(written, name))
            assert np.array_equal(getattr(read, name), getattr(written, name))


def test_what_minari_writes_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    buffers = [
        minari.data_collector.EpisodeBuffer(
            observations=np.zeros((4, 2), np.float32),
            actions=np.array([1, 2, 3]),
            rewards=[1.0, 2.0, 3.0],
            terminations=[False, False, True],
            truncations=[False] * 3,
            seed=7,
        )
    ]
    minari.create_dataset_from_buffers(
        "theirs-v0", buffers, observation_space=CARTPOLE[0], action_space=CARTPOLE[1], author="x", description="x"
    )
    dataset = Dataset(tmp_path / "theirs-v0")
    (episode,) = dataset.episodes()
    assert dataset.spaces == CARTPOLE
    assert (episode.return_, len(episode), episode.actions.tolist()) == (6.0, 3, [1, 2, 3])
    assert list(dataset.problems()) == []
    assert len(dataset.verified()) == 32


@pytest.mark.parametrize("size", [0.3, 0.9])
def test_a_file_that_was_cut_off_is_named(toy, size):
    content = toy.file.read_bytes()
    toy.file.write_bytes(content[: int(size * len(content))])
    with pytest.raises(StorageError, match=r"main_data.hdf5 is damaged.*was cut off"):
        toy.verified()
    with pytest.raises(StorageError, match=r"main_data\.hdf5"):
        list(toy.episodes())
    with pytest.raises(StorageError, match="was cut off"):
        bench(path=str(toy.folder))


def test_other_bytes_are_found_and_refused_by_the_buffer(toy):
    with h5py.File(toy.file, "r+") as data:
        data["episode_2/rewards"][3] += 1
    with pytest.raises(StorageError, match="has other bytes"):
        bench(path=str(toy.folder))


def test_nothing_is_left_of_a_dataset_that_could_not_be_written(tmp_path):
    def breaks():
        yield next(toy_episodes())
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        write_dataset(tmp_path / "half", SPACES, breaks(), {})
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="there is no episode"):
        write_dataset(tmp_path / "none", SPACES, [], {})


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("minari_version", "0.7.1", "it is of Minari 0.7.1"),
        ("minari_version", "new", "which is no version"),
        ("observation_space", '{"type": "Text", "max_length": 3}', "kind 'Text'"),
        ("action_space", '{"type": "Tuple", "subspaces": [{"type": "Discrete", "n": 2}]}', "actions are Tuple"),
        ("observation_space", '{"type": "Dict", "subspaces": {}}', "has no leaf"),
        ("data_format", "zarr", "'zarr'; what is read here is hdf5, arrow, parquet"),
    ],
)
def test_metadata_that_cannot_be_used_are_named(toy, entry, value, message):
    file = toy.folder / "metadata.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), entry: value}))
    with pytest.raises(StorageError, match=message):
        Dataset(toy.folder)


@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("action_space", space_text(Box(-5, 5, (1,), np.float32))),
        ("observation_space", space_text(Box(-9, 9, (3,), np.float32))),
        ("dataset_id", "other-v0"),
        ("env_spec", '{"id": "Other-v0"}'),
        ("rlcore", {"env": "other"}),
    ],
)
def test_metadata_that_were_changed_are_named(key, value, form, tmp_path, capsys):
    dataset = write_dataset(tmp_path / "toy", SPACES, toy_episodes(), {"rlcore": {"env": "toy"}}, data_format=form)
    assert command_line.main(["data", "check", str(dataset.folder)]) == 0
    file = dataset.folder / "metadata.json"
    raw = json.loads(file.read_text())
    file.write_text(json.dumps(raw, sort_keys=True))
    assert command_line.main(["data", "check", str(dataset.folder)]) == 0, "another layout of the same"
    file.write_text(json.dumps({**raw, key: {**raw["rlcore"], **value} if key == "rlcore" else value}))
    for words in (["check"], ["convert", "--out", str(tmp_path / "out")], ["merge", "--out", str(tmp_path / "out")]):
        assert command_line.main(["data", *words, str(dataset.folder)]) == 5
        assert f"{file} is damaged, as it says something else than was written" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_data_that_are_read_part_by_part_are_the_same(toy, monkeypatch):
    together = bench(path=str(toy.folder))._data.columns()
    monkeypatch.setattr("rlcore_plugin_datasets.transitions._PART", 25)  # three episodes and the next three
    for key, column in bench(path=str(toy.folder))._data.columns().items():
        assert torch.equal(column, together[key]), key


@pytest.mark.parametrize("steps", [50, 70])
def test_steps_that_the_metadata_do_not_have_are_damage(toy, steps):
    file = toy.folder / "metadata.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "total_steps": steps}))
    with pytest.raises(StorageError, match=f"has 60 steps, and its metadata say {steps}"):
        bench(path=str(toy.folder))


def test_a_folder_without_metadata_is_no_dataset(tmp_path):
    with pytest.raises(StorageError, match="is no dataset"):
        Dataset(tmp_path)


NEVER = np.zeros(10, dtype=bool)
BAD = {
    "rewards are not finite": {"rewards": np.full(10, np.nan)},
    "has no end": {"terminations": NEVER, "truncations": NEVER},
    "observations are one more than steps": {"observations": np.zeros((10, 3), np.float32)},
    "it ends there and goes on": {"terminations": np.arange(10) == 4},
    r"actions \[9.0\] are outside of": {"actions": np.full((10, 1), 9, np.float32)},
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_told_with_file_episode_and_step(tmp_path, message):
    spaces = (SPACES[0], Box(-8, 8, (1,), np.float32))
    good = list(toy_episodes())
    dataset = write_dataset(tmp_path / "bad", spaces, [good[0], changed(good[2], **BAD[message])], {})
    (problem,) = dataset.problems()
    assert problem.startswith(f"{dataset.file}, episode 1, ")

    assert re.search(message, problem)


def test_merged_datasets_have_the_episodes_of_both(toy, tmp_path):
    other = write_dataset(tmp_path / "other", SPACES, toy_episodes(2), {})
    both = merged([toy, other], tmp_path / "both")
    assert both.metadata.episodes == 8
    assert minari.MinariDataset(both.folder).total_steps == 80
    discrete = write_dataset(tmp_path / "discrete", (SPACES[0], Discrete(2)), _discrete(), {})
    with pytest.raises(ConfigError, match="only equal ones can be merged"):
        merged([toy, discrete], tmp_path / "never")


def _discrete():
    for episode in toy_episodes(1):
        yield changed(episode, actions=np.zeros(10, np.int64))


def test_the_buffer_has_each_step_once_and_keeps_ends_apart(toy):
    buffer = bench(path=str(toy.folder), minibatch_size=60)
    assert len(buffer) == 60
    views = buffer._data.columns()
    episodes = list(toy_episodes())
    assert np.array_equal(views["observation"], np.concatenate([e.observations[:-1] for e in episodes]))
    assert np.array_equal(views["next", "observation"], np.concatenate([e.observations[1:] for e in episodes]))
    assert np.allclose(views["next", "reward"].squeeze(-1), np.concatenate([e.rewards for e in episodes]))
    assert (views["next", "terminated"].sum(), views["next", "truncated"].sum()) == (3, 3)
    assert views["next", "done"].sum() == 6


def test_the_best_episodes_are_those_of_the_highest_return(toy):
    best = bench(path=str(toy.folder), best=0.3)
    returns = [episode.return_ for episode in toy_episodes()]
    assert len(best) == 10 * math.ceil(0.3 * 6)
    kept = sorted(best._data.columns()["next", "reward"].view(-1, 10).sum(-1).tolist())
    assert kept == pytest.approx(sorted(returns)[-2:], rel=1e-5)


def test_steps_are_joined_inside_of_episodes(toy):
    buffer = bench(path=str(toy.folder), n_steps=3, gamma=0.5)
    views = buffer._data.columns()
    assert len(buffer) == 60
    rewards = next(toy_episodes()).rewards
    assert float(views["next", "reward"][0]) == pytest.approx(
        rewards[0] + 0.5 * rewards[1] + 0.25 * rewards[2], rel=1e-5
    )
    assert float(views["next", "reward"][9]) == pytest.approx(rewards[9], rel=1e-5)
    assert views["steps_to_next_obs"][7:10].flatten().tolist() == [3, 2, 1]


@pytest.mark.parametrize("keys", [{}, {"n_steps": 3}, {"best": 0.5}])
def test_each_row_has_the_return_to_go_of_its_episode(toy, keys, monkeypatch):
    monkeypatch.setattr("rlcore_plugin_datasets.transitions._PART", 25)
    buffer = bench(path=str(toy.folder), gamma=0.5, return_to_go=True, **keys)
    assert "return_to_go" in buffer.writes
    found = next(iter(buffer.minibatches(None)))["return_to_go"]
    assert (tuple(found.shape), found.dtype) == ((8, 1), torch.float32)
    episodes = list(toy_episodes())
    if "best" in keys:
        best = sorted(episodes, key=lambda episode: episode.return_)[3:]
        episodes = [episode for episode in episodes if any(episode is kept for kept in best)]
    expected = [
        sum(0.5**ahead * reward for ahead, reward in enumerate(episode.rewards[step:]))
        for episode in episodes
        for step in range(len(episode))
    ]
    assert buffer._data.columns()["return_to_go"].flatten().tolist() == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_return_to_go_is_asked_for_and_takes_the_discount_of_the_loss(toy):
    assert "return_to_go" not in bench(path=str(toy.folder)).writes
    loss = LossKeys(gamma=0.9)
    for said, gamma in (({}, 0.99), ({"return_to_go": True}, 0.9), ({"return_to_go": True, "gamma": 1.0}, 1.0)):
        assert with_discount_of(DatasetBuffer.Config(path="x", **said), loss).gamma == gamma


class LossKeys(BaseModel):
    gamma: float


def test_data_that_changed_since_the_checkpoint_are_refused(toy, tmp_path):
    state = bench(path=str(toy.folder)).state_dict()
    other = write_dataset(tmp_path / "more", SPACES, toy_episodes(7), {})
    with pytest.raises(ConfigError, match="the checkpoint was trained on"):
        bench(path=str(other.folder)).load_state_dict(state)
    again = bench(path=str(toy.folder))
    again.load_state_dict(state)
    assert torch.equal(again.state_dict()["generator"], state["generator"])


@pytest.mark.parametrize(
    ("keys", "message"),
    [({"minibatch_size": 61}, "which is more than the 60 transitions"), ({"path": "/nowhere"}, "is no dataset")],
)
def test_what_cannot_be_sampled_is_refused(toy, keys, message):
    with pytest.raises((ConfigError, StorageError), match=message):
        bench(**{"path": str(toy.folder), **keys})


def test_spaces_that_differ_from_those_of_the_env_are_refused(tmp_path):
    spaces = (SPACES[0], Discrete(2))
    dataset = write_dataset(tmp_path / "discrete", spaces, _discrete(), {})
    with pytest.raises(ConfigError, match=r"has the spaces .*Discrete\(2\)"):
        bench(path=str(dataset.folder))


def test_an_open_episode_is_refused_or_truncated(tmp_path):
    open_one = changed(next(toy_episodes()), terminations=NEVER, truncations=NEVER)
    dataset = write_dataset(tmp_path / "open", SPACES, [open_one], {})
    with pytest.raises(ConfigError, match=r'has no end.*open_episodes = "truncate"'):
        bench(path=str(dataset.folder))
    buffer = bench(path=str(dataset.folder), open_episodes="truncate")
    assert buffer._data.columns()["next", "truncated"].sum() == 1


@pytest.mark.parametrize("how", ["--random", "--sample"])
def test_a_config_is_recorded_without_a_run(how, tmp_path, monkeypatch, capsys):
    from rlcore.cli import command_line

    monkeypatch.chdir(tmp_path)
    config = {**TOY_CONFIG, "env": {"use": "testing:toy", "actions": "discrete"}}
    (tmp_path / "toy.toml").write_text(tomli_w.dumps(config))
    arguments = ["data", "record", "toy.toml", "--episodes", "2", "--seed", "3", "--set", "env.reward=aim", how]
    for out in ("one", "two"):
        assert command_line.main([*arguments, "--out", out]) == 0, capsys.readouterr().err
    one, two = (list(Dataset(out).episodes()) for out in ("one", "two"))
    assert [episode.seed for episode in one] == [3, 4]
    assert all(np.array_equal(a.actions, b.actions) for a, b in zip(one, two, strict=True)), "the seed decides"
    assert not (tmp_path / "runs").exists()
    assert command_line.main([*arguments, "--best", "--out", "three"]) == 2
    assert "--best chooses among the checkpoints of a run" in capsys.readouterr().err
