"""Modules beside the config: found, named where they are not, and part of what a resume depends on."""

from __future__ import annotations

import json
import sys
import tomllib

import pytest

import rlcore
from rlcore import ConfigError
from rlcore.config import own_modules
from rlcore.config.own_modules import named_modules
from rlcore.config.raw import RawConfig

ENVS = """
import gymnasium, numpy as np

class Grid(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        return self.np_random.random(2, np.float32), float(action), self.steps == 5, False, {}

gymnasium.register("OwnGrid-v0", entry_point="own_envs:Grid")
"""
OWN = {"env": {"id": "own_envs:OwnGrid-v0"}}


@pytest.fixture(autouse=True)
def _forget():
    """Leave path and modules as they were."""
    path, added = list(sys.path), list(own_modules._added)
    yield
    sys.path[:], own_modules._added[:] = path, added
    for name in ("own_envs", "own_nets", "colorsys"):
        sys.modules.pop(name, None)


@pytest.fixture
def own(write_config, workdir):
    """Write a module and a config beside it into a folder that is not the working directory."""

    def write(folder="project", **sections):
        place = workdir / folder
        place.mkdir()
        (place / "own_envs.py").write_text(ENVS)
        path = place / "config.toml"
        path.write_bytes(write_config(**{**OWN, **sections}).read_bytes())
        return path

    return write


def test_values_of_the_form_module_and_name_name_modules(tmp_path):
    values = {
        "env": {
            "use": "gymnasium:gymnasium",
            "id": "a.b:C-v0",
            "kwargs": {"deep": ["c:D", "http://x", "colon", "cuda:0"]},
        },
        "run": {"device": "cuda:0"},
        "hook": [{"use": "p:q", "note": "see: this"}],
    }
    assert named_modules(RawConfig(values, tmp_path / "c.toml")) == {"a.b": "[env] id", "c": "[env] kwargs.deep"}


def test_a_run_finds_the_module_beside_its_config_at_its_start_and_at_its_resumes(own, cli, workdir):
    path = own()
    assert cli("train", path, "--until", 32, "--quiet").code == 0
    folder = workdir / "runs" / "tiny"
    assert tomllib.loads((folder / "config.toml").read_text())["plugins"]["path"] == [str(path.parent)]
    manifest = json.loads(max((folder / "checkpoints").glob("*/manifest.json")).read_text())
    assert "source of own_envs.py" in manifest["domain"]
    outcome = cli("train", "--resume", folder, "--until", 64, "--quiet")
    assert outcome.code == 0
    assert "exact = false" not in outcome.err
    assert cli("evaluate", folder, "--episodes", 1).code == 0
    (path.parent / "own_envs.py").write_text(ENVS + "\n")
    assert "the source of own_envs.py is not what the checkpoint was made with" in cli("train", path, "--resume").err


@pytest.mark.parametrize("method", ["forkserver", pytest.param("spawn", marks=pytest.mark.slow), "fork"])
def test_processes_of_workers_find_it_too(own, method):
    collector = {"use": "parallel:workers", "processes": "always", "start_method": method, "frames_per_batch": 32}
    path = own(collector=collector, env={"id": "own_envs:OwnGrid-v0", "num_envs": 2})
    run = rlcore.build(rlcore.load_config(path), write=False)
    run.trainer.train()
    assert run.trainer.progress.frames == 96


def test_the_module_may_lie_beside_the_base_or_in_a_folder_of_the_path(own, workdir):
    path = own()
    (workdir / "own.toml").write_text("extends = 'project/config.toml'\n")
    config = rlcore.load_config(workdir / "own.toml")
    assert config.resolved()["plugins"]["path"] == [str(path.parent)]
    values = tomllib.loads(path.read_text()) | {"plugins": {"path": ["project"]}}
    assert rlcore.load_config(values).resolved()["plugins"]["path"] == [str(path.parent)]
    with pytest.raises(ConfigError, match=r"\[plugins\] path: '.*nowhere' is no folder"):
        rlcore.load_config(values, ["plugins.path=['nowhere']"])


def test_a_folder_without_a_module_that_the_config_names_is_not_on_the_path(own):
    path = own(env={"id": "CartPole-v1"})
    assert rlcore.load_config(path).resolved()["plugins"]["path"] == []
    assert str(path.parent) not in sys.path


def test_what_is_installed_comes_first_and_that_is_told(own, caplog):
    path = own(env={"id": "colorsys:OwnGrid-v0"})
    (path.parent / "colorsys.py").write_text("raise SystemError('it was imported')")
    rlcore.load_config(path)
    assert "[env] id: the module 'colorsys' is" in caplog.text
    assert "what is installed comes first; rename the file to use it" in caplog.text
    import colorsys

    assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)


def test_a_module_that_is_missing_is_named_with_the_one_that_was_meant(own, cli):
    outcome = cli("config", "check", own(env={"id": "own_env:OwnGrid-v0"}))
    assert outcome.code == 2
    assert "No module named 'own_env'; did you mean 'own_envs'?" in outcome.err
    outcome = cli("config", "check", own("other", env={"id": "qqqq:OwnGrid-v0"}))
    assert "a module of your own, qqqq.py, lies beside the config or in a folder of [plugins] path" in outcome.err


def test_two_modules_of_one_name_in_one_process_are_refused(own):
    rlcore.build(rlcore.load_config(own()), write=False)
    with pytest.raises(ConfigError, match=r"imported for another config of this process; .* needs another name"):
        rlcore.load_config(own("second"))


def test_the_config_of_a_run_that_was_not_written_here_puts_nothing_on_the_path(own, cli, workdir, monkeypatch):
    path = own()
    assert cli("train", path, "--until", 32, "--quiet").code == 0
    sys.path.remove(str(path.parent))
    monkeypatch.setenv("RLCORE_CONFIG_HOME", str(workdir / "elsewhere"))
    assert cli("config", "show", workdir / "runs" / "tiny" / "config.toml").code == 0
    assert str(path.parent) not in sys.path


@pytest.mark.parametrize("text", ["own_env:run", "own_envs:run", "colorsys:run", "nothing:run"])
def test_a_text_with_a_colon_of_a_logger_or_in_an_env_refuses_nothing(own, caplog, text):
    kwargs = {"mission": text}
    path = own(env={"id": "CartPole-v1", "kwargs": kwargs}, logger=[{"use": "csv"}])
    values = tomllib.loads(path.read_text())
    values["logger"][0]["project"] = text
    assert text.partition(":")[0] not in named_modules(RawConfig({"logger": values["logger"]}, path))
    rlcore.load_config(path)
    assert not caplog.text


def test_the_module_of_a_wrapper_with_arguments_is_found(own):
    path = own(env={"wrappers": [{"use": "own_nets:Wrap", "a": 1}]})
    (path.parent / "own_nets.py").write_text("")
    assert named_modules(rlcore.load_config(path).raw)["own_nets"] == "[env] wrappers.use"
