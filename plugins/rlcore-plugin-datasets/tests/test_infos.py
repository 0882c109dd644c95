"""Infos of steps: recorded as the env gave them, by the command and the hook, and refused where they are irregular."""

import gymnasium as gym
import minari
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from rlcore_plugin_datasets.converting import converted
from rlcore_plugin_datasets.dataset import Dataset
from rlcore_plugin_datasets.formats import FORMATS
from rlcore_plugin_testing.small_run import make_run
from rlcore_plugin_testing.toy import ToyEnv

from rlcore import ConfigError
from rlcore.cli import command_line
from rlcore.errors import EnvError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")

CONFIG = """
[run]
name = "recorded"
total_frames = 100
[env]
use = "gymnasium"
id = "{id}"
{more}
[model]
use = "testing:toy"
[loss]
use = "testing:toy"
[optimizer]
use = "adam"
"""


class Telling(gym.Env):
    """Tells of what `infos` of the test says for each step of an episode, the first of which is the reset."""

    observation_space = Box(-9, 9, (1,), np.float32)
    action_space = Discrete(2)
    infos = ()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._seen(), self.infos[0]

    def step(self, action):
        self.steps += 1
        return self._seen(), 1.0, self.steps == len(self.infos) - 1, False, self.infos[self.steps]

    def _seen(self):
        return np.full(1, self.steps, np.float32)


@pytest.fixture
def telling(monkeypatch):
    """Register an env that tells of what is given."""
    gym.register("Telling-v0", Telling)
    yield lambda *infos: monkeypatch.setattr(Telling, "infos", infos)
    gym.registry.pop("Telling-v0")


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Record random episodes of an env of Gymnasium with infos; return the dataset."""
    monkeypatch.chdir(tmp_path)

    def play(id_, *options, more=""):
        (tmp_path / "config.toml").write_text(CONFIG.format(id=id_, more=more))
        arguments = ["data", "record", "config.toml", "--random", "--infos", "--episodes", "2", "--out", "out"]
        code = command_line.main([*arguments, *options])
        return Dataset("out") if code == 0 else code

    return play


def replayed(id_, episode):
    """Return the infos that Gymnasium itself gives for the actions of an episode, the reset's first."""
    env = gym.make(id_)
    infos = [env.reset(seed=episode.seed)[1]]
    infos += [env.step(action)[4] for action in episode.actions]
    return infos


@pytest.mark.parametrize("form", FORMATS)
def test_infos_are_those_of_gymnasium_and_minari_reads_them(form, record):
    dataset = record("Hopper-v5", "--format", form)
    theirs = list(minari.MinariDataset(dataset.folder))
    ours = list(dataset.episodes(infos=True))
    assert list(dataset.problems()) == []
    for episode, read in zip(ours, theirs, strict=True):
        infos = replayed("Hopper-v5", episode)
        assert set(episode.infos) == set(infos[1]) == set(read.infos) != set(infos[0])
        for name, column in episode.infos.items():
            assert len(column) == len(episode) + 1
            expected = [info.get(name, np.nan) for info in infos]  # of the reset there are fewer
            np.testing.assert_equal(column, expected)
            np.testing.assert_equal(np.asarray(read.infos[name]), column)


def test_nothing_is_recorded_unasked(record, monkeypatch):
    monkeypatch.setattr("rlcore_plugin_gymnasium.serial.SerialEnv.tell_infos", lambda *_: pytest.fail("was asked"))
    run = command_line.main
    monkeypatch.setattr(command_line, "main", lambda arguments: run([a for a in arguments if a != "--infos"]))
    assert [episode.infos for episode in record("Hopper-v5").episodes(infos=True)] == [{}, {}]


def test_numbers_are_kept_and_what_is_left_out_is_told(telling, record, caplog):
    step = {
        "n": 1,
        "deep": {"pair": [1, 2], "yes": True},
        "array": np.ones((2, 1), np.int8),
        "text": "a",
        "nothing": None,
        "ragged": [[1], [1, 2]],
    }
    telling({"n": 0, "seed": 7, "array": np.zeros(3)}, step, {**step, "n": 0.5})
    (episode, _) = record("Telling-v0").episodes(infos=True)
    found = {name: column.tolist() for name, column in episode.infos.items()}
    assert found == {
        "n": [0.0, 1.0, 0.5],
        "deep/pair": [[0, 0], [1, 2], [1, 2]],
        "deep/yes": [False, True, True],
        "array": [[[0], [0]], [[1], [1]], [[1], [1]]],
    }
    assert episode.infos["array"].dtype == np.int8
    assert sorted(caplog.messages) == [
        "the info 'array' of env 'Telling-v0' is left out: that of a reset is an array [3], and those of steps an "
        "array [2, 1]",
        "the info 'nothing' of env 'Telling-v0' is left out: it is a NoneType, and no numbers",
        "the info 'ragged' of env 'Telling-v0' is left out: it is a list, and no numbers",
        "the info 'seed' of env 'Telling-v0' is left out: only a reset has it",
        "the info 'text' of env 'Telling-v0' is left out: it is a str, and no numbers",
    ]


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ({"a": 1}, "step 3 of its episode: its infos have nothing under 'b', and those of the steps before had a num"),
        ({"a": 1, "b": 2, "episode": {"r": 3}}, "have a number under 'episode/r', and those of the steps before had"),
        ({"a": 1, "b": [1, 2]}, r"have an array [2] under 'b', and those of the steps before had a number"),
        ({"a": 1, "b": "text"}, "have nothing under 'b'"),
    ],
)
def test_infos_that_are_not_the_same_of_each_step_are_refused(last, message, telling, record, capsys, tmp_path):
    telling({}, {"a": 1, "b": 2}, {"b": 3, "a": 4}, last)
    assert record("Telling-v0") != 0
    said = capsys.readouterr().err
    assert "env 'Telling-v0', number 0" in said
    assert message in said
    assert not (tmp_path / "out").exists()


def test_an_env_without_infos_is_told_of(record, caplog):
    assert [episode.infos for episode in record("CartPole-v1").episodes(infos=True)] == [{}, {}]
    assert caplog.messages == ["env 'CartPole-v1' has no infos that are numbers; none are recorded"]


def test_the_native_form_is_recorded_too(record):
    dataset = record("CartPole-v1", more='vectorization = "native"')
    assert dataset.metadata.episodes == 2


def test_repeated_actions_have_the_infos_of_the_last_repetition(telling, record):
    telling({"n": 0}, {"n": 1}, {"n": 2}, {"n": 3})
    (episode, _) = record("Telling-v0", more="frame_skip = 2").episodes(infos=True)
    assert episode.infos["n"].tolist() == [0, 2, 3]


# the hook

LENGTH = "run.total_frames=128"


def recorded(folder, stop_at=None, resume=False, **env):
    """Train a run that records its infos; return its folder."""
    sections = {
        "hook": [{"use": "datasets:record", "infos": True}],
        "checkpoint": {"use": "torch", "every": 32},
        "env": {"use": "testing:toy", "num_envs": 2, **env},
    }
    run = make_run(LENGTH, sections=sections, folder=folder, resume=resume)
    run.trainer.stop_at = stop_at or run.trainer.stop_at
    run.trainer.train()
    return run.folder


def episodes_of(folder):
    return list(Dataset(folder / "recorded").episodes(infos=True))


@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
def test_the_hook_records_infos_with_the_steps_they_belong_to(reset_mode, tmp_path):
    """The toy env says in its infos what its observations show."""
    episodes = episodes_of(recorded(tmp_path, reset_mode=reset_mode))
    assert len(episodes) > 20
    for episode in episodes:
        steps = np.arange(len(episode) + 1)
        assert episode.infos["elapsed"].tolist() == steps.tolist()
        assert np.allclose(episode.observations[:, 0], steps / 10)
        assert np.allclose(episode.infos["began/at"], episode.observations[:, 1])
        assert np.allclose(episode.infos["position"][1:], episode.observations[1:, 2], atol=1e-6)
        assert np.isnan(episode.infos["position"][0])


@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
def test_a_run_that_stops_and_resumes_records_the_same_infos(reset_mode, tmp_path):
    whole = recorded(tmp_path / "whole", reset_mode=reset_mode)
    recorded(tmp_path / "parts", stop_at=80, reset_mode=reset_mode)
    parts = recorded(tmp_path / "parts", resume=True, reset_mode=reset_mode)
    check_alike_with_nan(episodes_of(parts), episodes_of(whole))
    again = converted(parts / "recorded.episodes", tmp_path / "again", None, None, "arrow")
    check_alike_with_nan(list(again.episodes(infos=True)), episodes_of(whole))


def check_alike_with_nan(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert set(one.infos) == set(other.infos) == {"began/at", "elapsed", "episode", "position"}
        for name, column in one.infos.items():
            np.testing.assert_equal(column, other.infos[name])
            assert column.dtype == other.infos[name].dtype


@pytest.mark.parametrize(("before", "now"), [("true", "false"), ("false", "true")])
def test_infos_that_come_and_go_within_a_run_are_refused(before, now, tmp_path):
    changed = {"hook": [{"use": "datasets:record", "infos": before == "true"}], "checkpoint": {"use": "torch"}}
    run = make_run(LENGTH, sections=changed, folder=tmp_path)
    run.trainer.stop_at = 64
    run.trainer.train()
    hook = make_run(
        sections={"hook": [{"use": "datasets:record", "infos": now == "true"}]}, folder=tmp_path / "other"
    ).trainer.hooks.hooks[0]
    with pytest.raises(ConfigError, match=rf"infos = {now}, and the episodes that were running .* with {before}"):
        hook.instance.load_state_dict(run.trainer.hooks.hooks[0].instance.state_dict())


def test_infos_that_no_env_here_tells_of_are_refused(tmp_path, monkeypatch):
    hook = [{"use": "datasets:record", "infos": True}]
    workers = {"use": "parallel:workers", "processes": "always", "frames_per_batch": 16}
    run = make_run(LENGTH, sections={"hook": hook, "collector": workers}, folder=tmp_path / "workers")
    with pytest.raises(ConfigError, match=r"steps envs in other processes.*use the collector 'local'"):
        run.trainer.train()
    monkeypatch.setattr(ToyEnv, "tell_infos", None)
    with pytest.raises(ConfigError, match="hands over no infos of its steps"):
        make_run(LENGTH, sections={"hook": hook}, folder=tmp_path / "toy")


def test_a_missing_info_ends_the_run_with_the_step(telling, tmp_path):
    telling({}, {"a": 1.0}, {})
    sections = {
        "hook": [{"use": "datasets:record", "infos": True}],
        "env": {"use": "gymnasium", "id": "Telling-v0", "num_envs": 1},
    }
    with pytest.raises(EnvError, match=r"step 2 of its episode: its infos have nothing under 'a'"):
        make_run(LENGTH, sections=sections, folder=tmp_path).trainer.train()


def test_what_is_recorded_without_infos_has_none(tmp_path):
    run = make_run(LENGTH, sections={"hook": [{"use": "datasets:record"}]}, folder=tmp_path)
    run.trainer.train()
    assert all(episode.infos == {} for episode in episodes_of(run.folder))
