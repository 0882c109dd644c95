"""Presets: what is found, which one fits an environment, and the config that is made of it."""

import importlib
import json
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from rlcore_plugin_presets import presets as presets_module
from rlcore_plugin_presets import published
from rlcore_plugin_presets.config_text import checked_name, filled, run_name
from rlcore_plugin_presets.fitting import check, chosen
from rlcore_plugin_presets.presets import GROUP, Preset, Reached, named, of_package, presets
from rlcore_plugin_presets.published import distributions
from rlcore_plugin_testing import doctor

from rlcore.config.file import read
from rlcore.errors import ConfigError, MissingPluginError, PluginError, RlcoreError
from rlcore.plugins import discovery, host
from rlcore.plugins.discovery import Installed, installed
from rlcore.plugins.registry import Owner

OWNER = Owner("mine", "rlcore-plugin-mine", "1.2.0")
TEXT = """
# what it is called
[run]
name = "x"          # its name
total_frames = 100

[env]
use = "gymnasium"
id = "CartPole-v1"  # which one

[[optimizer]]
use = "adam"
lr = 1e-3           # its rate

[preset]
algorithm = "mine"
summary = "A preset"
"""


def preset(more="", name="mine-generic"):
    return Preset(name, TEXT + more, OWNER)


def test_every_published_preset_is_found_here():
    everything = presets()
    assert {preset.name for preset in everything} | {preset.about.algorithm for preset in everything} >= {
        *distributions()
    }


def test_a_name_is_that_of_a_preset_or_of_an_algorithm():
    assert [preset.name for preset in named("ppo-mujoco")] == ["ppo-mujoco"]
    assert {preset.about.algorithm for preset in named("ppo")} == {"ppo"}
    assert len(named("ppo")) >= 3


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pop", "did you mean 'ppo'"),
        ("ppo-mujocco", "did you mean 'ppo-mujoco'"),
        ("xyz", "known: a2c, appo, bc, bronet, c51, cql, crossq, ddpg, discrete-cql, discrete-sac, dqn, dreamer, droq"),
    ],
)
def test_an_unknown_preset_names_what_is_like_it(name, told):
    with pytest.raises(PluginError, match=told):
        named(name)


def test_a_preset_of_a_plugin_that_is_not_installed_names_the_command(monkeypatch, tmp_path):
    file = tmp_path / "published.json"
    file.write_text(json.dumps(dict.fromkeys(("muzero", "muzero-atari"), "rlcore-plugin-absent")))
    monkeypatch.setattr(published, "FILE", file)
    for name in ("muzero", "muzero-atari"):
        with pytest.raises(MissingPluginError, match="pip install rlcore-plugin-absent"):
            named(name)


def package(folder, monkeypatch, texts, name="mine_with_presets"):
    (folder / name).mkdir()
    (folder / name / "__init__.py").touch()
    for file, text in texts.items():
        (folder / name / file).write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    entry = EntryPoint("mine", name, GROUP)
    return Installed("mine", name, "rlcore-plugin-mine", "1.2.0", entry_point=entry)


def of_presets(monkeypatch, entries):
    """Let these be all that are installed."""
    monkeypatch.setattr(
        presets_module, "installed", lambda group="rlcore": entries if group == GROUP else installed(group)
    )


def test_a_package_of_presets_may_hold_other_files(tmp_path, monkeypatch):
    entry = package(tmp_path, monkeypatch, {"a.toml": TEXT, "README.md": "no preset"})
    (found,) = of_package(entry)
    assert (found.name, found.owner, found.about.algorithm) == ("a", OWNER, "mine")


def test_two_presets_of_one_name_name_both_owners(tmp_path, monkeypatch):
    first = package(tmp_path, monkeypatch, {"ppo-generic.toml": TEXT})
    others = [entry for entry in installed(GROUP) if entry.name == "ppo"]
    of_presets(monkeypatch, [first, *others])
    with pytest.raises(PluginError, match=r"'ppo-generic' is in rlcore-plugin-mine 1.2.0 and in rlcore-plugin-ppo"):
        presets()


def test_a_package_that_cannot_be_imported_is_named():
    point = EntryPoint("mine", "absent_with_presets", GROUP)
    entry = Installed("mine", "absent_with_presets", "rlcore-plugin-mine", "1.2.0", entry_point=point)
    with pytest.raises(PluginError, match=r"presets 'mine' \(rlcore-plugin-mine 1.2.0\) failed: .*absent_with_presets"):
        list(of_package(entry))


def test_the_doctor_finds_a_preset_that_does_not_fit(tmp_path, monkeypatch):
    entry = package(tmp_path, monkeypatch, {"a.toml": TEXT.replace("lr =", "rl =")})
    of_presets(monkeypatch, [entry])
    (finding,) = doctor.presets_that_do_not_fit([entry])
    assert finding.plugin == "rlcore-plugin-mine"
    assert "unknown key for optimizer 'adam'" in finding.problem
    assert "[model]: missing" in finding.problem


@pytest.mark.parametrize("absent", ["atari", "cnn", "gymnasium", "mlp", "ppo", "recurrent", "transforms"])
def test_a_preset_that_waits_for_a_plugin_is_no_finding_of_the_doctor(absent, monkeypatch):
    there = [entry for entry in installed() if entry.name != absent]
    for module in (discovery, host, presets_module, doctor):
        monkeypatch.setattr(
            module, "installed", lambda group="rlcore": there if group == "rlcore" else installed(group)
        )
    waiting = [found for found in presets() if f"rlcore-plugin-{absent}" in found.waits_for]
    assert waiting
    assert list(doctor.presets_that_do_not_fit(there)) == []
    with pytest.raises(RlcoreError, match=f"pip install rlcore-plugin-{absent}"):
        check(waiting[0])


def test_the_doctor_finds_two_presets_of_one_name(tmp_path, monkeypatch):
    first = package(tmp_path, monkeypatch, {"ppo-generic.toml": named("ppo-generic")[0].text})
    (second,) = [entry for entry in installed(GROUP) if entry.name == "ppo"]
    of_presets(monkeypatch, [first, second])
    (finding,) = doctor.presets_that_do_not_fit([first, second])
    assert finding.problem == "preset 'ppo-generic' is in rlcore-plugin-mine and rlcore-plugin-ppo"
    assert finding.fix == "pip uninstall one of rlcore-plugin-mine, rlcore-plugin-ppo"


def test_presets_for_another_rlcore_are_refused():
    entry = Installed("mine", "absent_with_presets", "rlcore-plugin-mine", "1.2.0", requires_rlcore=">=99")
    with pytest.raises(PluginError, match="needs rlcore >=99"):
        list(of_package(entry))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[run", "not valid TOML"),
        ("[run]", r"\[preset\] algorithm: missing"),
        ('[preset]\nalgorithm = "x"\nsummary = "y"\nactoins = "any"', "unknown key .*; did you mean 'actions'"),
    ],
)
def test_a_preset_that_says_nothing_of_itself_is_refused_by_name(text, told):
    with pytest.raises(PluginError, match=told) as error:
        Preset("bad", text, OWNER).about  # noqa: B018
    assert "preset 'bad' (rlcore-plugin-mine 1.2.0)" in str(error.value)


@pytest.mark.parametrize(
    ("algorithm", "env_id", "name"),
    [
        ("ppo", "CartPole-v1", "ppo-classic-control"),
        ("ppo", "gymnasium.envs.classic_control:CartPole-v1", "ppo-classic-control"),
        ("ppo", "Pendulum-v1", "ppo-generic"),
        ("ppo", "InvertedPendulum-v5", "ppo-mujoco"),
        ("ppo-generic", "CartPole-v1", "ppo-generic"),
        ("c51", "MountainCar-v0", "c51-generic"),
        ("ppo", "ALE/Breakout-v5", "ppo-atari"),
        ("dqn", "BreakoutNoFrameskip-v4", "dqn-atari"),
    ],
)
def test_the_preset_follows_from_the_environment(algorithm, env_id, name):
    assert chosen(named(algorithm), env_id).name == name


@pytest.mark.parametrize(
    ("algorithm", "env_id", "told"),
    [
        ("dqn", "Pendulum-v1", r"Pendulum-v1: its actions are Box.*'dqn-generic' is for discrete actions"),
        ("ppo-mujoco", "CartPole-v1", r"Discrete\(2\), and preset 'ppo-mujoco' is for continuous actions"),
        ("ppo", "CartPol-v1", "Did you mean: `CartPole`"),
    ],
)
def test_an_environment_for_which_nothing_fits_says_why(algorithm, env_id, told):
    with pytest.raises(ConfigError, match=told):
        chosen(named(algorithm), env_id)


def test_presets_for_other_environments_are_named():
    others = [preset('envs = ["Ant-*"]', "a"), preset('envs = ["Hopper-*"]', "b")]
    with pytest.raises(ConfigError, match=r"no preset of 'mine' is for 'CartPole-v1'; there are: a for Ant-\*; b for"):
        chosen(others, "CartPole-v1")


def test_what_is_filled_in_keeps_the_comments():
    text = filled(preset(), "short", "Acrobot-v1", {("optimizer", "0", "lr"): 0.5, ("loss", "gamma"): 0.9})
    values = tomllib.loads(text)
    assert values["run"] == {"name": "short", "total_frames": 100}
    assert values["env"]["id"] == "Acrobot-v1"
    assert values["optimizer"] == [{"use": "adam", "lr": 0.5}]
    assert values["loss"] == {"gamma": 0.9}
    assert "preset" not in values
    for line in (
        "# what it is called",
        'name = "short"          # its name',
        "# which one",
        "lr = 0.5           # its rate",
    ):
        assert line in text


def test_the_environment_goes_to_the_key_that_the_preset_names():
    (found,) = named("dqn-atari")
    assert found.env_id == "ALE/Pong-v5"
    env = tomllib.loads(filled(found, "short", "ALE/Breakout-v5"))["env"]
    assert env["game"] == "ALE/Breakout-v5"
    assert "id" not in env


def test_what_was_measured_stands_above_the_config():
    reached = '\n[[preset.reached]]\nenv = "CartPole-v1"\nframes = 1000\nreturns = [10.0, 20.0]\n'
    text = filled(preset(reached), "a", "CartPole-v1")
    assert "# Preset mine-generic of rlcore-plugin-mine 1.2.0" in text
    assert "CartPole-v1: 15.0 after 1,000 frames (2 seeds, 10.0 to 20.0)" in text
    assert "Nothing was measured on" not in text
    assert "# Nothing was measured on Acrobot-v1." in filled(preset(reached), "a", "Acrobot-v1")


def test_one_seed_is_no_spread():
    assert str(Reached(env="A-v0", frames=10, returns=[1])) == "A-v0: 1.0 after 10 frames (1 seed)"


@pytest.mark.parametrize(
    ("env_id", "name"),
    [("CartPole-v1", "mine-CartPole-v1"), ("ale_py:ALE/Pong-v5", "mine-ALE-Pong-v5"), (None, "mine-CartPole-v1")],
)
def test_a_run_that_nobody_named_is_called_after_algorithm_and_environment(env_id, name):
    assert run_name(preset(), env_id) == name == checked_name(name)


def test_a_name_that_no_folder_can_have_is_refused():
    with pytest.raises(ConfigError, match="'a/b' cannot be that of a folder"):
        checked_name("a/b")


@pytest.mark.parametrize("found", presets(), ids=lambda found: found.name)
def test_an_installed_preset_is_complete(found, tmp_path):
    text = filled(found, "a", found.env_id)
    sections = [line for line in text.splitlines() if line.startswith("[")]
    assert {"[run]", "[env]", "[evaluator]", "[checkpoint]", "[[logger]]"} <= set(sections)
    assert {hook["use"] for hook in found.values["hook"]} >= {"health", "progress-bar"}
    (tmp_path / "a.toml").write_text(text)
    assert read(Path(tmp_path / "a.toml")).values == tomllib.loads(text)
    # a part of a run tells of the whole where the env is only the first and no schedule follows the horizon
    in_part = not found.about.envs and "scheduler" not in found.values
    for reached in found.about.reached[:1]:
        horizon = found.values["run"]["total_frames"]
        assert reached.frames == horizon or (in_part and reached.frames < horizon)
