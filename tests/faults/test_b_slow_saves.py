"""Rows of A, B and C in which something is slow and does not hang, or hangs where nobody waits for it."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from rlcore_plugin_gymnasium.config import Config
from rlcore_plugin_gymnasium.env import make
from rlcore_plugin_testing import make_run

from rlcore.checkpoints.background import BackgroundSave
from rlcore.errors import StorageError
from rlcore.process.watchdog import Watchdog
from rlcore.types.context import Context
from rlcore.types.heart import Heart

BAD_SAVES = Path(__file__).with_name("bad_saves.py")
RUN = Path("runs/tiny")


@pytest.fixture
def train(forked_cli, write_config, workdir):
    """Train in a process of its own with one of the back ends, and return what it did and the seconds that it took."""
    shutil.copy(BAD_SAVES, workdir)

    def run(backend, **checkpoint):
        config = write_config(
            plugins={"files": ["bad_saves.py"]},
            run={"hang_after": 3, "total_frames": 96 if not checkpoint else 1_000_000},
            checkpoint={"use": backend, "every": 32 if not checkpoint else 3200, **checkpoint},
        )
        began = time.monotonic()
        done = forked_cli("train", config, "--quiet", "--grace", "1")
        return done, time.monotonic() - began

    return run


def status():
    return json.loads((RUN / "status.json").read_text())


@pytest.mark.parametrize("backend", ["crawling", pytest.param("slow-sync", marks=pytest.mark.slow)])
def test_b11_a_save_that_is_slow_is_not_taken_to_hang(train, backend):
    done, seconds = train(backend)
    assert done.code == 0, done.err
    assert seconds > 6
    assert status()["state"] == "done"


@pytest.mark.slow
def test_b11_a_save_that_never_returns_ends_the_run(train):
    done, _ = train("stuck")
    assert done.code == 3, done.err
    assert "nothing moved for 3 s in save" in done.err
    assert status()["state"] == "failed-resumable"


def test_b11_a_save_in_the_background_that_never_returns_ends_the_run_while_it_trains(train):
    done, seconds = train("stuck", **{"async": True})
    assert done.code == 3, done.err
    assert seconds < 60
    assert "the checkpoint that is written in the background did not move for 3 s" in done.err
    assert status()["state"] == "failed-resumable"
    assert status()["frames"] > 3200, "training went on meanwhile"


def test_b11_nobody_waits_for_a_save_that_is_given_up(tmp_path):
    heart, end = Heart(), threading.Event()

    def save():
        with heart.save(tmp_path):
            end.wait(60)
        return tmp_path

    begun = BackgroundSave(save, heart)
    while not heart.saves:
        time.sleep(0.01)
    heart.saves[0].given_up = True
    begun.wait()
    with pytest.raises(StorageError, match="did not move and is given up"):
        begun.result()
    end.set()


def test_b11_a_save_moves_while_its_files_change_or_its_parts_are_done(tmp_path):
    heart = Heart()
    (tmp_path / "below").mkdir()
    with heart.save(tmp_path) as save:
        marks = [save.mark(), save.mark()]
        assert marks[0] == marks[1]
        (tmp_path / "below" / "file").write_bytes(b"1")
        marks.append(save.mark())
        (tmp_path / "below" / "file").write_bytes(b"12")
        marks.append(save.mark())
        save.pieces += 1
        marks.append(save.mark())
    assert len(set(marks)) == 4
    assert not heart.saves


def steps(env, count):
    env.reset(seed=1)
    for _ in range(count):
        env.step(np.zeros(1, np.int64))
    return env.state_dict()


def test_c3_every_step_of_an_episode_that_is_played_again_counts_as_moving():
    context = Context.alone("test")
    config = Config(id="MountainCar-v0")
    state = steps(make(config, Context.alone("first")), 150)
    env = make(config, context)
    before = context.heart.beats
    env.load_state_dict(state)
    assert context.heart.beats - before == 150
    assert env.inexact() is None
    assert context.heart.beats - before >= 150 + 80 + 60, "and every step of the envs on which it is tried out"


def test_c3_workers_count_the_steps_that_they_play_again(tmp_path):
    collector = {
        "use": "parallel:workers",
        "processes": "always",
        "num_workers": 1,
        "frames_per_batch": 64,
        "start_method": "fork",
    }
    sections = {"env": {"use": "gymnasium", "id": "MountainCar-v0"}, "collector": collector, "evaluator": None}
    run = make_run("run.total_frames=64", folder=tmp_path, sections=sections)
    run.trainer.train()
    resumed = make_run("run.total_frames=64", folder=tmp_path, sections=sections, resume=True)
    counters = resumed.trainer.collector._workers()._counters
    assert counters.beats(0) >= 64
    resumed.trainer.collector.close()


def test_a3_reading_a_checkpoint_and_restoring_every_component_count_as_moving(tmp_path):
    run = make_run(folder=tmp_path)
    run.trainer.train()
    heart, components = run.trainer.parts.heart, len(run.trainer.parts.stateful)
    before = heart.beats
    _, states = run.trainer.parts.store.load_newest()
    files = len(run.trainer.parts.store.entries()[-1].manifest["files"])
    assert heart.beats - before >= files
    before = heart.beats
    run.trainer.load_state_dict(states)
    assert heart.beats - before >= components


def test_a9_importing_counts_as_moving(tmp_path, monkeypatch):
    watchdog = Watchdog(Heart(), 1, tmp_path, lambda reason: None)
    with watchdog.watching():
        for number in range(50):
            monkeypatch.setitem(sys.modules, f"another_module_{number}", sys)
            time.sleep(0.05)
    assert watchdog.reason is None


def test_c16_how_long_a_run_may_stand_still_may_change_at_a_resume(cli, write_config):
    assert cli("train", write_config(), "--quiet", "--until", "64").code == 0
    outcome = cli("train", write_config(run={"hang_after": 7}), "--quiet", "--resume")
    assert outcome.code == 0, outcome.err
    assert "exact = false: [config]" not in outcome.err
