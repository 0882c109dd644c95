"""`rlcore evaluate` with other envs, devices, files and a video; and `rlcore watch`."""

from __future__ import annotations

import json
import sys

import pytest

EVALUATED = {"evaluator": {"use": "episodes", "episodes": 2, "every": 64}}


@pytest.fixture
def trained(cli, write_config):
    path = write_config(**EVALUATED, transform=[{"use": "observation-norm", "frames": 50}])
    assert cli("train", path, "--quiet").code == 0
    return "runs/tiny"


def returns(outcome):
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)["data"]["returns"]


def test_evaluate_takes_keys_of_env_and_evaluator_alone(cli, trained):
    as_trained = cli("evaluate", trained, "--json")
    assert returns(cli("evaluate", trained, "--json", "--set", "evaluator.num_envs=1", "--device", "cpu")) == (
        returns(as_trained)
    )
    short = cli("evaluate", trained, "--json", "--set", "env.max_episode_steps=5", "--set", "evaluator.episodes=3")
    assert returns(short) == [5.0, 5.0, 5.0]
    for change, problem in (
        ("model.hidden=[4]", "an agent plays as it was trained"),
        ("transform.0.frames=3", "an agent plays as it was trained"),
        ("run.seed=3", "an agent plays as it was trained"),
        ("env.max_episode_stepz=5", "did you mean 'max_episode_steps'"),
        ("env.id=Acrobot-v1", "was trained with"),
        ("evaluator.episodes=0", "greater than or equal to 1"),
    ):
        outcome = cli("evaluate", trained, "--set", change)
        assert outcome.code == 2, change
        assert problem in outcome.err
    assert "abacus" in cli("evaluate", trained, "--device", "abacus").err


def test_evaluate_builds_nothing_of_the_training(cli, trained, monkeypatch):
    for name in ("rlcore_plugin_ppo.loss", "rlcore_plugin_ppo.estimator", "rlcore_plugin_rollout.local"):
        monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
    assert cli("evaluate", trained).code == 0


@pytest.mark.parametrize("suffix", ["safetensors", "pt2"])
def test_an_export_evaluates_as_the_run_does(cli, trained, workdir, suffix):
    pytest.importorskip("torch" if suffix == "pt2" else suffix)
    kind = {"pt2": "torch-export"}.get(suffix, suffix)
    assert cli("export", trained, "--format", kind, "--output", f"p.{suffix}").code == 0
    of_run, of_file = (returns(cli("evaluate", trained, "--json", *more)) for more in ((), ("--agent", f"p.{suffix}")))
    assert of_file == pytest.approx(of_run, rel=1e-5)
    assert "leave one of them out" in cli("evaluate", trained, "--agent", f"p.{suffix}", "--best").err
    assert "there is no run folder or checkpoint" in cli("evaluate", trained, "--agent", "absent.pt2").err


def test_best_of_a_run_that_was_never_evaluated_is_its_latest_aloud(cli, write_config):
    assert cli("train", write_config(), "--quiet").code == 0
    outcome = cli("evaluate", "runs/tiny", "--best", "--episodes", "1")
    assert outcome.code == 0
    assert "none is the best; the latest is taken" in outcome.err


def test_watch_writes_a_video_of_the_episodes(cli, trained, workdir):
    video = pytest.importorskip("rlcore_plugin_video.mp4")
    outcome = cli("watch", trained, "--episodes", "2", "--video", "seen.mp4", "--set", "env.max_episode_steps=8")
    assert outcome.code == 0, outcome.err
    assert [line.split()[:2] for line in outcome.out.splitlines()] == [
        ["seed", "10000"],
        ["seed", "10001"],
        ["seen.mp4"],
    ]
    frames, rate = video.read_mp4("seen.mp4")
    assert (len(frames), rate) == (10, 25)  # of each the first, every second of an env of 50 per second, the end
    assert bool((frames[0] != frames[-1]).any())
    again = cli("watch", trained, "--video", "seen.mp4")
    assert again.code == 2
    assert "exists already" in again.err
    assert "call it seen.mp4" in cli("watch", trained, "--video", "seen.gif").err


def test_evaluate_writes_a_video_of_its_first_episode(cli, trained, workdir):
    video = pytest.importorskip("rlcore_plugin_video.mp4")
    outcome = cli("evaluate", trained, "--video", "seen.mp4", "--set", "env.max_episode_steps=8", "--seed", "3")
    assert outcome.code == 0, outcome.err
    assert "seen.mp4: the episode of seed 3" in outcome.out
    assert len(video.read_mp4("seen.mp4")[0]) == 5


def test_watch_opens_a_window(cli, trained, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    import pygame

    shown = []
    update = pygame.display.flip
    monkeypatch.setattr(pygame.display, "flip", lambda: shown.append(update()))
    outcome = cli("watch", trained, "--set", "env.max_episode_steps=5")
    assert outcome.code == 0, outcome.err
    assert "seed  10000  return        5.0  length      5" in outcome.out
    assert len(shown) >= 5


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems always have a display")
def test_without_a_display_watch_says_what_to_do(cli, trained, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    outcome = cli("watch", trained)
    assert outcome.code == 2
    assert "write a video with --video FILE" in outcome.err


def test_without_the_video_plugin_nothing_is_played(cli, trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "rlcore_plugin_video", None)
    monkeypatch.setitem(sys.modules, "rlcore_plugin_video.mp4", None)
    assert "pip install rlcore-plugin-video" in cli("watch", trained, "--video", "seen.mp4").err
