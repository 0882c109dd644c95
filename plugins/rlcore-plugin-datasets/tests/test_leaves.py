"""Observations that are dicts: in files as Minari has them, with what their masks forbid."""

import h5py
import minari
import numpy as np
import pytest
import tomli_w
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from rlcore_plugin_datasets.dataset import Dataset, write_dataset
from rlcore_plugin_datasets.episode import Episode, problems
from rlcore_plugin_datasets.journal import Journal, read_journal
from rlcore_plugin_datasets.leaves import paths_of

from rlcore import ConfigError, load_config
from rlcore.cli.command_line import main
from rlcore.envs import forbidden, packed_space
from rlcore.errors import StorageError
from rlcore.run.build import build

NESTED = Dict(
    {
        "camera": Box(0, 255, (2, 2), np.uint8),
        "body": Dict({"at": Box(-1, 1, (3,), np.float64), "grip": Discrete(3)}),
        "both": Tuple([MultiBinary(4), Box(-1, 1, (1,), np.float32)]),
    }
)
MASKED = Dict({"seen": Box(-1, 1, (2,), np.float32), "action_mask": MultiBinary(5)})
TWO_CHOICES = MultiDiscrete([3, 2], start=[1, 0])


def episode_of(space, actions, taken, seed=3):
    """Return an episode of these actions, with samples of the space as observations."""
    packed = packed_space(space, actions)
    count = len(taken)
    observations = packed.pack(
        {name: np.stack([leaf.sample() for _ in range(count + 1)]) for name, leaf in packed.leaves.items()}
    )
    last = np.arange(count) == count - 1
    return packed, Episode(observations, np.array(taken), np.ones(count), last, np.zeros(count, bool), seed)


def with_masks(rows, taken):
    """Return an episode whose masks are these rows; the last one is that of the last observation."""
    packed, episode = episode_of(MASKED, TWO_CHOICES, taken)
    packed.array(episode.observations, "action_mask")[:] = rows
    return packed, episode


@pytest.fixture
def nested(tmp_path):
    packed, episode = episode_of(NESTED, Discrete(2), [0, 1, 1])
    return write_dataset(tmp_path / "nested", (packed, Discrete(2)), [episode], {}), episode


def test_minari_reads_what_was_written_and_it_is_read_back(nested):
    dataset, episode = nested
    theirs = minari.MinariDataset(dataset.folder)
    assert theirs.observation_space == NESTED
    (read,) = theirs
    packed = dataset.spaces[0]
    for name, path in {"body.at": ("body", "at"), "both.0": ("both", 0), "camera": ("camera",)}.items():
        found = read.observations
        for part in path:
            found = found[part]
        assert np.array_equal(found, packed.array(episode.observations, name))
    (mine,) = dataset.episodes()
    assert np.array_equal(mine.observations, episode.observations)
    assert (dataset.spaces, list(dataset.problems())) == ((packed_space(NESTED, Discrete(2)), Discrete(2)), [])


def test_what_minari_writes_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    observations = {
        "action_mask": np.ones((3, 5), np.int8),
        "seen": np.arange(6, dtype=np.float32).reshape(3, 2) / 10,
    }
    episode = minari.data_collector.EpisodeBuffer(
        observations=observations,
        actions=np.array([[1, 0], [2, 1]]),
        rewards=[1.0, 2.0],
        terminations=[False, True],
        truncations=[False] * 2,
    )
    minari.create_dataset_from_buffers(
        "theirs-v0", [episode], observation_space=MASKED, action_space=TWO_CHOICES, author="x", description="x"
    )
    dataset = Dataset(tmp_path / "theirs-v0")
    (read,) = dataset.episodes()
    assert dataset.spaces == (packed_space(MASKED, TWO_CHOICES), TWO_CHOICES)
    assert np.array_equal(dataset.spaces[0].array(read.observations, "seen"), observations["seen"])
    assert list(dataset.problems()) == []


def test_a_journal_keeps_them(tmp_path):
    packed, episode = episode_of(NESTED, Discrete(2), [0, 1])
    journal = Journal(tmp_path / "run.episodes", (packed, Discrete(2)))
    journal.append(episode)
    journal.close()
    spaces, episodes = read_journal(tmp_path / "run.episodes")
    assert spaces == (packed, Discrete(2))
    assert np.array_equal(next(episodes).observations, episode.observations)


@pytest.mark.parametrize(
    ("rows", "taken", "found"),
    [
        ([1, 1, 0, 0, 1], [[1, 1], [2, 1]], []),
        ([1, 1, 0, 0, 1], [[1, 1], [3, 1]], ["step 1: its action_mask forbids the action [3, 1]"]),
        ([1, 1, 0, 0, 1], [[1, 0], [3, 1]], ["step 0: its action_mask forbids the action [1, 0]"]),
        ([1, 1, 0, 0, 0], [[1, 1], [2, 1]], ["step 0: its action_mask allows no action"]),
        ([1, 1, 1, 1, 1], [[1, 1], [4, 1]], ["step 1: actions [4, 1] are outside of MultiDiscrete([3 2])"]),
    ],
)
def test_what_a_mask_forbids_is_named(rows, taken, found):
    packed, episode = with_masks(rows, taken)
    assert [problem.replace(", start=[1 0]", "") for problem in problems(episode, (packed, TWO_CHOICES))] == found


def test_what_a_mask_of_bits_forbids_is_named():
    space = Dict({"seen": Box(-1, 1, (2,), np.float32), "action_mask": MultiBinary(4)})
    packed, episode = episode_of(space, MultiBinary(2), [[0, 1], [1, 1]])
    packed.array(episode.observations, "action_mask")[:] = [1, 1, 0, 1]
    assert list(problems(episode, (packed, MultiBinary(2)))) == []
    episode.actions[1] = [1, 0]
    found = list(problems(episode, (packed, MultiBinary(2))))
    assert found == ["step 1: its action_mask forbids the action [1, 0]"]


def test_a_value_outside_of_a_leaf_is_named():
    packed, episode = episode_of(NESTED, Discrete(2), [0, 1])
    packed.array(episode.observations, "body.at")[1, 2] = 7
    packed.array(episode.observations, "both.1")[0] = np.nan
    assert [problem.split(" are ")[0] for problem in problems(episode, (packed, Discrete(2)))] == [
        "step 1: observations (leaf 'body.at') [" + problem_values(packed, episode) + "]",
        "step 0: observations (leaf 'both.1')",
    ]


def problem_values(packed, episode):
    return ", ".join(map(str, packed.array(episode.observations, "body.at")[1].tolist()))


def test_a_leaf_that_is_not_in_the_file_is_named(nested):
    dataset, _ = nested
    with h5py.File(dataset.file, "r+") as data:
        del data["episode_0/observations/body/grip"]
    with pytest.raises(StorageError, match=r"episode 0 cannot be read.*grip"):
        list(dataset.episodes())


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b", "a"), ("a.b", "a.b.c")])
def test_a_leaf_and_a_dict_of_one_name_have_no_place(names):
    with pytest.raises(ConfigError, match="one place for the leaf"):
        paths_of(names)


def test_a_policy_with_masks_is_cloned_from_random_episodes(tmp_path, capsys):
    """Taxi: the mask is in the infos; random actions keep to it, and so do the clones."""
    config = {
        "run": {"name": "bc", "total_updates": 20, "folder": str(tmp_path)},
        "env": {"use": "gymnasium", "id": "Taxi-v4", "mask_key": "action_mask"},
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "offline:bc"},
        "optimizer": [{"use": "adam", "lr": 0.01}],
        "buffer": {
            "use": "datasets:dataset",
            "path": str(tmp_path / "taxi"),
            "updates_per_iteration": 10,
            "minibatch_size": 32,
        },
    }
    file = tmp_path / "bc.toml"
    file.write_text(tomli_w.dumps(config))
    assert main(["data", "record", str(file), "--random", "--episodes", "2", "--out", str(tmp_path / "taxi")]) == 0
    assert main(["data", "check", str(tmp_path / "taxi")]) == 0
    assert "inside their spaces" in capsys.readouterr().out
    (packed, actions), (episode, _) = Dataset(tmp_path / "taxi").spaces, Dataset(tmp_path / "taxi").episodes()
    assert len(set(episode.actions.tolist())) > 2
    trainer = build(load_config(file)).trainer
    trainer.train()
    seen = episode.observations[:-1]
    chosen = trainer.model.policy.mode(torch.from_numpy(seen)).numpy()
    assert not forbidden(packed, actions, seen, chosen).any()
    assert (packed.choices, int(actions.n)) == ((6,), 6)
