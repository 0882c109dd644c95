"""C: run, config and checkpoint belong together; what changes no result may change without a flag."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from rlcore.checkpoints.manifest import render
from rlcore.run_folder.next_config import NEXT_CONFIG, settle_after_crash
from rlcore.run_folder.run_id import ID_FILE

RUN = Path("runs/tiny")
ACCEPTED = ("--resume", "--accept-changes")


def manifests(folder=RUN):
    found = [json.loads(path.read_text()) for path in folder.glob("checkpoints/[0-9]*/manifest.json")]
    return sorted(found, key=lambda manifest: (manifest["progress"]["frames"], manifest["time"]))


def flip(file, old, new):
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_a_flipped_bit_in_the_config_is_found_out(cli, stopped):
    stopped()
    before = (RUN / "config.toml").read_bytes()
    flip(RUN / "config.toml", "entropy_coef = 0.01", "entropy_coef = 1.01")
    outcome = cli("train", "--resume", RUN)
    assert outcome.code == 2
    assert "loss.entropy_coef = 1.01 here, 0.01 in the run" in outcome.err
    assert "--accept-changes" in outcome.err
    (RUN / "config.toml").write_bytes(before)
    assert cli("evaluate", RUN, "--episodes", "1").code == 0
    resumed = cli("train", "--resume", RUN)
    assert resumed.code == 0, resumed.err
    assert manifests()[-1]["exact"], manifests()[-1]["inexact"]


def test_an_edit_that_is_accepted_lasts(cli, stopped):
    stopped()
    flip(RUN / "config.toml", "entropy_coef = 0.01", "entropy_coef = 1.01")
    assert cli("train", "--until", "64", "--resume", RUN, "--accept-changes").code == 0
    assert manifests()[-1]["config"]["loss"]["entropy_coef"] == 1.01
    assert cli("train", "--resume", RUN).code == 0
    assert "[config] loss.entropy_coef = 1.01 here, 0.01 in the run" in manifests()[-1]["inexact"]


def test_a_checkpoint_of_another_run_of_the_same_shape_is_found_out(cli, stopped, tmp_path):
    stopped(run={"name": "other"})
    other = sorted(Path("runs/other/checkpoints").glob("0*32-*"))[-1]
    stopped()
    shutil.rmtree(next(RUN.glob("checkpoints/0*32-*")))
    shutil.copytree(other, RUN / "checkpoints" / other.name)
    outcome = cli("train", "--resume", RUN)
    assert outcome.code == 2
    ids = [Path("runs", name, ID_FILE).read_text().strip() for name in ("other", "tiny")]
    assert f"has the run id {ids[0]}, this folder has {ids[1]}" in outcome.err
    assert cli("train", "--resume", RUN, "--accept-changes").code == 0
    assert manifests()[-1]["run_id"] == ids[1], "it is of this run from here on"
    assert any("is of another run" in reason for reason in manifests()[-1]["inexact"])


def test_a_copy_of_a_whole_run_folder_goes_on_without_a_word(cli, stopped):
    stopped()
    for place in ("runs/copy", "elsewhere/moved"):
        shutil.copytree(RUN, place)
        assert cli("train", "--resume", place).code == 0
        assert manifests(Path(place))[-1]["exact"]
    (RUN / ID_FILE).unlink()  # as a copy of what is visible and known leaves it
    outcome = cli("train", "--resume", RUN, "--set", "run.total_frames=64")
    assert outcome.code == 0, outcome.err
    assert (RUN / ID_FILE).read_text().strip() == manifests()[-1]["run_id"]


def test_the_config_of_an_accepted_change_is_in_its_place_after_a_crash_between_the_two(cli, stopped):
    path = stopped()
    before = (RUN / "config.toml").read_bytes()
    assert cli("train", path, "--until", "64", *ACCEPTED, "--set", "loss.entropy_coef=0.5").code == 0
    assert not (RUN / NEXT_CONFIG).exists()
    (RUN / "config.toml").rename(RUN / NEXT_CONFIG)
    (RUN / "config.toml").write_bytes(before)
    outcome = cli("train", "--resume", RUN)
    assert outcome.code == 0, outcome.err
    assert "entropy_coef = 0.5" in (RUN / "config.toml").read_text()


def _raised(call, *arguments):
    try:
        call(*arguments)
    except BaseException as error:
        return error


def in_its_place(place, kind):
    """Put something at a place that is no config."""
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "link":
            place.symlink_to(Path("runs/foreign.toml").absolute())
        case "nested":
            place.write_text("x = " + "[" * 100_000)


@pytest.mark.parametrize("kind", ["pipe", "link", "nested"])
def test_what_is_no_announced_config_is_left_alone(cli, stopped, kind):
    stopped()
    shutil.copy(RUN / "config.toml", "runs/foreign.toml")
    in_its_place(RUN / NEXT_CONFIG, kind)
    raised = []
    thread = threading.Thread(target=lambda: raised.append(_raised(settle_after_crash, RUN)), daemon=True)
    thread.start()
    thread.join(10)
    assert raised == [None]
    assert os.path.lexists(RUN / NEXT_CONFIG)
    assert not (RUN / "config.toml").is_symlink()


def test_what_was_accepted_is_saved_before_the_first_frame(cli, stopped):
    """So that a process that is killed before its first checkpoint leaves a run that goes on as it was asked to."""
    from rlcore.training.loop import Loop

    def killed(self):
        raise KeyboardInterrupt

    path = stopped()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_iteration", killed)
        cli("train", path, *ACCEPTED, "--set", "optimizer.lr=0.25", "--fresh", "buffer")
    newest = manifests()[-1]
    assert (newest["progress"]["frames"], newest["config"]["optimizer"][0]["lr"]) == (32, 0.25)
    assert "lr = 0.25" in (RUN / "config.toml").read_text()
    assert cli("train", "--resume", RUN).code == 0


def test_what_was_accepted_in_front_of_a_damaged_checkpoint_goes_on_without_a_flag(cli, stopped, monkeypatch):
    """The damaged one is of a later frame, and has the config of before."""
    from rlcore.training.loop import Loop

    def killed(self):
        raise KeyboardInterrupt

    path = stopped()
    state = max(RUN.glob("checkpoints/[0-9]*")) / "state.json"
    state.write_bytes(state.read_bytes()[:-1])
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_iteration", killed)
        cli("train", path, *ACCEPTED, "--set", "optimizer.lr=0.25")
    assert [manifest["progress"]["frames"] for manifest in manifests()] == [0, 0, 32]
    outcome = cli("train", "--resume", RUN)
    assert outcome.code == 0, outcome.err
    assert manifests()[-1]["config"]["optimizer"][0]["lr"] == 0.25


def as_the_first_format(folder):
    """Write the manifests of a run as rlcore did before they knew run and config."""
    (folder / ID_FILE).unlink()
    for path in folder.glob("checkpoints/[0-9]*/manifest.json"):
        manifest = json.loads(path.read_text())
        for key in ("run_id", "config", "config_hash", "observers"):
            del manifest[key]
        path.write_text(render(manifest | {"format": 1}))


def test_a_run_of_the_first_format_goes_on_exactly_and_is_bound_from_then_on(cli, stopped, write_config):
    assert cli("train", write_config(run={"name": "whole"})).code == 0
    stopped()
    as_the_first_format(RUN)
    before = (RUN / "config.toml").read_bytes()
    flip(RUN / "config.toml", "entropy_coef = 0.01", "entropy_coef = 1.01")
    config = write_config()
    assert "0.01 here, 1.01 in the run" in cli("train", config, "--resume").err
    (RUN / "config.toml").write_bytes(before)
    assert cli("evaluate", RUN, "--episodes", "1").code == 0
    assert cli("train", "--resume", RUN).code == 0
    newest = manifests()[-1]
    assert newest["exact"]
    assert newest["digest"] == manifests(Path("runs/whole"))[-1]["digest"]
    assert newest["run_id"] == (RUN / ID_FILE).read_text().strip()


def test_the_best_checkpoint_is_evaluated_with_the_model_that_it_is_of(cli, stopped, write_config):
    stopped(evaluator={"use": "episodes", "every": 32, "episodes": 1})
    wider = write_config(model={"use": "mlp", "hidden": [16]})
    assert cli("train", wider, *ACCEPTED, "--fresh", "model").code == 0
    for option, frame in ((["--best"], 32), ([], 96)):
        outcome = cli("evaluate", RUN, "--episodes", "1", *option)
        assert outcome.code == 0, outcome.err
        assert f"at frame {frame}" in outcome.out


@pytest.mark.parametrize(
    "change",
    [
        *("run.hang_after=5", "learner.on_nonfinite=skip", "learner.skip_budget=3", "metrics.every=64"),
        *("checkpoint.keep_last=5", "checkpoint.async=true", "checkpoint.on_failure=warn", "run.total_frames=128"),
        *("hook.1.use=log-scalar", "logger.0.use=csv", "evaluator.use=episodes", "run.name=tiny"),
    ],
)
def test_what_changes_no_result_may_change_without_a_flag(cli, stopped, change):
    hooks = {"hook": [{"use": "clear-cuda-cache"}]}
    path = stopped(**hooks)
    outcome = cli("train", path, "--resume", "--set", change)
    assert outcome.code == 0, outcome.err
    assert manifests()[-1]["exact"], manifests()[-1]["inexact"]


def test_hooks_that_only_watch_may_change_and_go(cli, stopped, write_config):
    stopped(hook=[{"use": "log-scalar", "include_std": True}, {"use": "log-timing"}])
    for hooks in ([{"use": "log-scalar", "include_std": False}], None):
        outcome = cli("train", write_config(hook=hooks), "--resume", "--until", "64")
        assert outcome.code == 0, outcome.err
        assert manifests()[-1]["exact"]
