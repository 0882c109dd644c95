"""What goes wrong, and the exit code, message and state on disk that it leaves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rlcore.hooks.specs import POINTS

FAULTS = str(Path(__file__).with_name("faults.py"))
RUN = Path("runs/tiny")


@pytest.fixture
def faulty(write_config):
    """Write the config of a run that can use every part of `faults.py`."""

    def write(**sections):
        return write_config(plugins={"files": [FAULTS], "enable": ["ppo"]}, **sections)

    return write


def status():
    return json.loads((RUN / "status.json").read_text())


def newest():
    return sorted(RUN.glob("checkpoints/[0-9]*"))[-1]


def test_a_missing_config_is_refused(cli):
    outcome = cli("train", "nowhere.toml")
    assert outcome.code == 2
    assert "error: config file 'nowhere.toml' does not exist" in outcome.err


def test_an_existing_run_folder_is_refused(cli, write_config):
    path = write_config()
    assert cli("train", path, "--quiet").code == 0
    before = {file: file.read_bytes() for file in RUN.rglob("*") if file.is_file()}
    outcome = cli("train", path, "--quiet")
    assert outcome.code == 2
    assert "exists already; continue it with --resume, choose another name" in outcome.err
    assert {file: file.read_bytes() for file in RUN.rglob("*") if file.is_file()} == before


def test_resuming_what_is_not_there_is_refused(cli, write_config):
    outcome = cli("train", write_config(), "--resume")
    assert outcome.code == 2
    assert "run folder 'runs/tiny' does not exist" in outcome.err


def test_resuming_a_folder_that_is_not_there_or_no_run_says_so(cli, workdir):
    outcome = cli("train", "--resume", "nofolder")
    assert outcome.code == 2
    assert "error: --resume: run folder 'nofolder' does not exist" in outcome.err
    (workdir / "empty").mkdir()
    outcome = cli("train", "--resume", "empty")
    assert outcome.code == 2
    assert "error: --resume: 'empty' holds no config.toml" in outcome.err


@pytest.mark.parametrize("config", [None, "", "run = {"], ids=["none", "empty", "cut"])
def test_resuming_a_run_that_was_killed_while_it_was_built_begins_it(cli, write_config, config):
    path = write_config()
    RUN.mkdir(parents=True)
    if config is not None:
        (RUN / "config.toml").write_text(config)
    outcome = cli("train", path, "--quiet", "--resume")
    assert outcome.code == 0
    assert "runs/tiny/checkpoints has no checkpoint yet; the run starts over" in outcome.err
    assert (status()["state"], status()["frames"]) == ("done", 96)


def test_resuming_with_another_config_is_refused_with_what_differs(cli, write_config):
    assert cli("train", write_config(), "--quiet", "--until", "64").code == 0
    before = {file: file.read_bytes() for file in RUN.rglob("*") if file.is_file()}
    changed = write_config(optimizer=[{"use": "adam", "lr": 0.5}], model={"hidden": [16]})
    outcome = cli("train", changed, "--quiet", "--resume")
    assert outcome.code == 2
    assert "optimizer.adam.lr = 0.5 here, 0.0003 in the run" in outcome.err
    assert "model.hidden = [16] here, [8] in the run" in outcome.err
    assert "--accept-changes" in outcome.err
    assert {file: file.read_bytes() for file in RUN.rglob("*") if file.is_file()} == before, "nothing was touched"


def test_changes_can_be_accepted_and_are_recorded(cli, write_config):
    assert cli("train", write_config(), "--quiet", "--until", "64").code == 0
    changed = write_config(optimizer=[{"use": "adam", "lr": 0.5}])
    outcome = cli("train", changed, "--resume", "--accept-changes")
    assert outcome.code == 0
    reason = "[config] optimizer.adam.lr = 0.5 here, 0.0003 in the run"
    assert f"exact = false: {reason}" in outcome.err
    manifest = json.loads((newest() / "manifest.json").read_text())
    assert manifest["exact"] is False
    assert reason in manifest["inexact"]
    # the config of the run is now the changed one
    assert cli("train", changed, "--quiet", "--resume", "--set", "run.total_frames=128").code == 0


def test_what_only_watches_may_change_freely(cli, write_config):
    assert cli("train", write_config(), "--quiet", "--until", "64").code == 0
    hook = [{"use": "progress-bar"}]
    path = write_config(hook=hook, metrics={"every": 64}, checkpoint={"every": 64}, run={"total_frames": 128})
    outcome = cli("train", path, "--resume")
    assert outcome.code == 0
    assert "[config]" not in outcome.err
    assert status()["frames"] == 128


@pytest.mark.parametrize("name", ["runs", "runs/tiny"])
def test_an_output_folder_that_cannot_be_made_is_refused(cli, write_config, name):
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("a file in its place")
    outcome = cli("train", write_config(), "--quiet")
    assert outcome.code == 2
    assert "run folder 'runs/tiny'" in outcome.err
    assert Path(name).read_text() == "a file in its place"


def test_a_folder_where_nothing_can_be_written_is_refused(cli, write_config):
    # /proc refuses even root
    outcome = cli("train", write_config(run={"folder": "/proc/runs"}), "--quiet")
    assert outcome.code == 2
    assert "cannot be made or written to" in outcome.err
    assert "--set run.folder=PATH" in outcome.err


@pytest.mark.parametrize(
    ("id_", "message"),
    [
        ("NoSuchEnv-v0", "NoSuchEnv"),
        ("CartPole-v99", "v99"),
        ("no_such_module:Env-v0", "no_such_module"),
        ("CartPole v1", "CartPole v1"),
    ],
)
def test_an_env_that_does_not_exist_is_refused(cli, write_config, id_, message):
    outcome = cli("train", write_config(env={"id": id_}), "--quiet")
    assert outcome.code == 2
    assert f"[env] id = {id_!r} cannot be made" in outcome.err
    assert message in outcome.err
    assert not RUN.exists()


def test_a_plugin_that_fails_to_import_is_refused(cli, write_config, site):
    site.add("rlcore-plugin-bad", "module_of_bad", "raise RuntimeError('half installed')", version="3.1")
    outcome = cli("train", write_config(hook=[{"use": "bad"}]), "--quiet")
    assert outcome.code == 2
    assert "plugin 'bad' (rlcore-plugin-bad 3.1) failed: RuntimeError: half installed" in outcome.err
    assert not RUN.exists()


# hooks


IN_LOOP = [name for name in POINTS if name not in ("on_exception", "shutdown")]


@pytest.mark.parametrize("point", IN_LOOP)
def test_a_hook_that_raises_is_named_and_saved_checkpoints_still_load(cli, faulty, point):
    hook = [{"use": "at-point", "point": point, "from_frame": 64}]
    evaluator = {"use": "episodes", "episodes": 1, "every": 32}
    outcome = cli("train", faulty(hook=hook, evaluator=evaluator), "--quiet")
    if point == "setup":  # called before the first frame, so it only fails in a resumed run
        assert outcome.code == 0
        outcome = cli("train", faulty(hook=hook, evaluator=evaluator), "--quiet", "--resume")
    assert outcome.code == 7
    assert "RuntimeError: on purpose" in outcome.err
    assert f"raised by hook 'at-point' (faults.py loose file) at point '{point}'" in outcome.err
    assert status()["state"] == "failed-resumable"
    assert status()["reason"] == "RuntimeError: on purpose"
    # without the hook the run goes on from the latest checkpoint
    outcome = cli("train", faulty(evaluator=evaluator), "--quiet", "--resume", "--accept-changes")
    assert outcome.code == 0
    assert (status()["state"], status()["frames"]) == ("done", 96)


def test_a_hook_that_raises_before_the_first_checkpoint_leaves_a_run_that_cannot_be_resumed(cli, faulty):
    outcome = cli("train", faulty(hook=[{"use": "at-point", "point": "setup"}]), "--quiet")
    assert outcome.code == 7
    assert status()["state"] == "failed"
    assert "--resume" not in outcome.err


@pytest.mark.parametrize("point", ["on_exception", "shutdown"])
def test_a_hook_that_raises_at_the_end_does_not_change_how_the_run_ends(cli, faulty, point):
    hook = [{"use": "at-point", "point": point}]
    outcome = cli("train", faulty(hook=hook), "--quiet")
    assert outcome.code == 0
    assert status()["state"] == "done"
    failing = [*hook, {"use": "at-point", "name": "first", "point": "post_steps", "from_frame": 64}]
    outcome = cli("train", faulty(hook=failing, run={"name": "other"}), "--quiet")
    assert outcome.code == 7
    assert "raised by hook 'first'" in outcome.err


@pytest.mark.parametrize("point", IN_LOOP)
def test_a_hook_that_returns_a_wrong_type_is_named(cli, faulty, point):
    hook = [{"use": "at-point", "point": point, "from_frame": 0, "returns": 7}]
    evaluator = {"use": "episodes", "episodes": 1, "every": 32}
    outcome = cli("train", faulty(hook=hook, evaluator=evaluator), "--quiet")
    assert outcome.code == 7
    assert f"error: hook 'at-point' (faults.py loose file) at point '{point}' returned int; expected" in outcome.err
    assert "Traceback" not in outcome.err


# envs


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("step", r"env 'faults:Faulty-v0', number 0, raised RuntimeError at step \d+ of its episode: simulator gone"),
        ("reset", "raised RuntimeError at step 0 of its episode: simulator gone"),
        ("reward", r"reward of env 0 at step \d+ of the batch that began at frame 32 is nan; the batch is discarded"),
        ("observation", r"observation of env 0 at step \d+ of the batch that began at frame 32 is inf"),
        ("constructor", r"env 'faults:Faulty-v0' cannot be made: ValueError: no licence"),
        ("shape", r"number 0, raised ValueError at step \d+ of its episode: .*shape"),
        ("no reward", r"number 0, raised ValueError at step \d+ of its episode: .*'much'"),
    ],
)
def test_an_env_that_fails_is_an_error_of_the_env(cli, faulty, fault, message):
    env = {"use": "gymnasium", "id": "faults:Faulty-v0", "kwargs": {"fault": fault, "at": 40}}
    outcome = cli("train", faulty(env=env), "--quiet")
    assert outcome.code == 3
    assert re.search(message, outcome.err), outcome.err
    if fault not in ("reset", "constructor"):
        assert status()["state"] == "failed-resumable"
        healthy = faulty(env=env | {"kwargs": {}})
        assert cli("train", healthy, "--quiet", "--resume", "--accept-changes").code == 0


def test_an_env_that_fails_at_once_leaves_a_run_that_can_be_resumed_at_frame_0(cli, faulty):
    env = {"use": "gymnasium", "id": "faults:Faulty-v0", "kwargs": {"fault": "reset"}}
    assert cli("train", faulty(env=env), "--quiet").code == 3
    assert (status()["state"], status()["frames"]) == ("failed-resumable", 0)
    assert newest().name.startswith("000000000000-")
    healthy = faulty(env=env | {"kwargs": {}})
    assert cli("train", healthy, "--quiet", "--resume", "--accept-changes").code == 0
    assert (status()["state"], status()["frames"]) == ("done", 96)


def test_an_env_whose_observations_no_part_can_take_is_refused(cli, write_config):
    outcome = cli("train", write_config(env={"id": "FrozenLake-v1"}), "--quiet")
    assert outcome.code == 2
    assert 'use = "transforms:flatten"' in outcome.err
    assert not RUN.exists()


# numbers


def test_a_loss_that_is_not_a_number_stops_the_run(cli, faulty):
    outcome = cli("train", faulty(loss={"use": "nan-loss", "after": 5}), "--quiet")
    assert outcome.code == 4
    assert "3 optimisation steps of iteration 1 had a loss or gradient that is not finite" in outcome.err
    assert status()["state"] == "failed-resumable"
    assert "while optimising, iteration 1, frame 64" in outcome.err
    assert newest().name.startswith("000000000032-"), "the failed iteration is discarded"
    assert cli("train", faulty(loss={"use": "ppo"}), "--quiet", "--resume", "--accept-changes").code == 0


# storage


def test_a_full_disk_stops_the_run_and_leaves_what_was_saved(cli, faulty):
    outcome = cli("train", faulty(checkpoint={"use": "full-disk", "every": 32, "saves": 2}), "--quiet")
    assert outcome.code == 5
    assert "checkpoint at frame 64 could not be written" in outcome.err
    assert "No space left on device; checkpoints saved before are untouched" in outcome.err
    assert status()["state"] == "failed-resumable"
    assert sorted(path.name[:12] for path in RUN.glob("checkpoints/[0-9]*")) == ["000000000000", "000000000032"]
    assert not list(RUN.glob("checkpoints/.*"))
    outcome = cli("train", faulty(checkpoint={"use": "full-disk", "saves": 100}), "--quiet", "--resume")
    assert outcome.code == 0
    assert status()["frames"] == 96


@pytest.mark.parametrize("file", ["tensors.pt", "manifest.json", "state.json"])
def test_a_damaged_newest_checkpoint_falls_back_aloud(cli, write_config, file):
    path = write_config()
    assert cli("train", path, "--quiet", "--until", "64").code == 0
    damaged = newest()
    (damaged / file).write_bytes((damaged / file).read_bytes()[:-20])
    outcome = cli("train", path, "--quiet", "--resume")
    assert outcome.code == 0
    assert damaged.name in outcome.err
    assert status()["frames"] == 96


def test_foreign_checkpoints_are_refused_by_name(cli, write_config):
    path = write_config()
    foreign = RUN / "checkpoints" / "000000000064-abcdef"
    foreign.mkdir(parents=True)
    (foreign / "model.pkl").write_bytes(b"\x80\x04not ours")
    outcome = cli("train", path, "--quiet", "--resume")
    assert outcome.code == 5
    assert f"{foreign} is no checkpoint of rlcore: its manifest.json cannot be read" in outcome.err


def test_a_checkpoint_of_another_model_is_refused(cli, write_config):
    assert cli("train", write_config(), "--quiet", "--until", "64").code == 0
    outcome = cli("train", write_config(model={"hidden": [16]}), "--quiet", "--resume", "--accept-changes")
    assert outcome.code == 5
    assert "the state of model in the checkpoint does not fit" in outcome.err


def test_a_logger_that_fails_does_not_stop_the_run(cli, faulty):
    outcome = cli("train", faulty(logger=[{"use": "failing"}, {"use": "csv"}]))
    assert outcome.code == 0
    assert "logger 'failing' failed: ConnectionError: server gone; it is switched off for this run" in outcome.err
    assert "failures of logger failing" in outcome.out, "and the summary says so again"
    assert len((RUN / "metrics.csv").read_text().splitlines()) > 10
