"""Run folders that somebody else made, moved, damaged or took away: each command is right or says what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from rlcore_plugin_reports.colours import COLOURS
from rlcore_plugin_reports.plotting import plot_runs
from rlcore_plugin_reports.run_files import RunFiles, experiments

from rlcore.errors import ConfigError
from rlcore.files import lock
from rlcore.run_folder import folder as run_folder
from rlcore.run_folder import status as run_status

NOBODY = 65534
CSV = {"logger": [{"use": "csv"}]}
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def trained(cli, write_config):
    """The folder of a run that stopped early."""
    assert cli("train", write_config(**CSV), "--quiet", "--until", "32").code == 0
    return Path("runs/tiny")


@contextmanager
def other_user():
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def reachable(trained):
    """A copy of the run where every user can look at it."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    shutil.copytree(trained, place / "run")
    yield place / "run"
    shutil.rmtree(place)


# taken away, moved


HOOK = """
import shutil
from pathlib import Path
from pydantic import BaseModel
from rlcore import Component, hookimpl

class Hook:
    class Config(BaseModel):
        do: str

    def __init__(self, config, context):
        self.do, self.folder = config.do, context.run.folder

    @hookimpl
    def post_steps(self, trainer):
        if trainer.progress.frames == 32:
            exec(self.do)

@hookimpl
def provide_components():
    return [Component("hook", "doing", Hook)]
"""


@pytest.fixture
def doing(write_config, workdir):
    """Write a config whose hook does something to the folder in the middle of the run."""

    def write(do, **sections):
        (workdir / "doing.py").write_text(HOOK)
        return write_config(plugins={"files": ["doing.py"]}, hook=[{"use": "doing:doing", "do": do}], **sections)

    return write


@pytest.mark.parametrize("every", [16, 1000], ids=["at the next checkpoint", "at the next row of metrics"])
@pytest.mark.parametrize(
    "do",
    ["shutil.rmtree(self.folder)", "self.folder.rename('elsewhere')", "self.folder.rename('e'); self.folder.mkdir()"],
    ids=["removed", "renamed", "replaced"],
)
def test_a_folder_that_goes_away_ends_the_run_with_a_message(cli, doing, do, every):
    outcome = cli("train", doing(do, checkpoint={"every": every}, metrics={"every": 16}, **CSV), "--quiet")
    assert outcome.code == 5, outcome.err
    assert "runs/tiny' was removed, renamed or replaced while the run went on" in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.err.count("was removed") == 1, "said once, at the first write"


def test_an_env_that_changes_the_working_directory_scatters_nothing(cli, doing, workdir, pictures):
    (workdir / "far").mkdir()
    outcome = cli("train", doing("import os; os.chdir('far')", checkpoint={"every": 16}, **CSV))
    os.chdir(workdir)
    assert outcome.code == 0, outcome.err
    assert list((workdir / "far").rglob("*")) == []
    assert run_status.read_status(Path("runs/tiny"))["state"] == "done"
    assert cli("ckpt", "verify", "runs/tiny").code == 0
    assert "runs/tiny/curves.png" in outcome.out
    assert Path("runs/tiny/curves.png").is_file()


@pytest.mark.parametrize("name", ["my run (copy)", ".", "-tiny", "t" * 120])
def test_a_folder_may_be_renamed_as_people_like(cli, trained, workdir, monkeypatch, name):
    if name == ".":
        monkeypatch.chdir(trained)
    else:
        trained.rename(trained.with_name(name))
    place = "." if name == "." else f"runs/{name}"
    outcome = cli("train", "--resume", place, "--quiet")
    assert outcome.code == 0, outcome.err
    assert run_status.read_status(Path(place))["frames"] == 96
    assert run_folder.read_config(Path(place))["run"]["name"] == "tiny"
    assert cli("evaluate", place).code == 0


# of another user


@as_root
@pytest.mark.parametrize(
    "command",
    [
        ("train", "--resume", "RUN", "--quiet"),
        ("ckpt", "prune", "RUN", "--keep-last", "1"),
        ("ckpt", "convert", "RUN", "--to", "dcp"),
    ],
    ids=["resume", "prune", "convert"],
)
def test_a_folder_that_may_not_be_written_to_is_refused_with_a_message(cli, reachable, command):
    for path in (reachable, *reachable.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o555 if path.is_dir() else 0o444)
    with other_user():
        outcome = cli(*[reachable if word == "RUN" else word for word in command])
        assert cli("ckpt", "list", reachable).code == 0
    assert outcome.code == 2, outcome.err
    assert "cannot be written to" in outcome.err
    assert "cp -r" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("command", ["sync", "runs", "report", "plot", "ckpt list", "ckpt verify"])
def test_commands_that_only_look_import_nothing_of_a_run_folder(cli, doing, workdir, command):
    assert cli("train", doing("pass", **CSV), "--quiet", "--until", "32").code == 0
    (workdir / "doing.py").write_text(f"open({str(workdir / 'HACKED')!r}, 'w')\n" + HOOK)
    outcome = cli(*command.split(), "runs" if command == "runs" else "runs/tiny")
    assert outcome.code == 0, outcome.err
    assert not (workdir / "HACKED").exists()


# with a checkpoint of another run


@pytest.mark.parametrize("id_file", ["kept", "empty", "gone"])
@pytest.mark.parametrize(
    "command",
    [
        "evaluate RUN --episodes 1",
        "evaluate RUN --best --episodes 1",
        "watch RUN --video a.mp4",
        "export RUN --format torch-export",
        "data record RUN --episodes 1 --out data",
        "train --resume RUN --quiet",
    ],
)
def test_each_reader_refuses_a_checkpoint_that_was_copied_from_another_run(cli, write_config, command, id_file):
    evaluator = {"use": "episodes", "every": 32, "episodes": 1}
    for name, frames in (("tiny", 32), ("other", 64)):
        path = write_config(run={"name": name, "seed": frames}, evaluator=evaluator, **CSV)
        assert cli("train", path, "--quiet", "--until", frames).code == 0
    for checkpoint in Path("runs/tiny/checkpoints").glob("0*"):  # the best is then the copied one too
        manifest = json.loads((checkpoint / "manifest.json").read_text())
        assert manifest["run_id"] == Path("runs/tiny/run_id").read_text().strip()
    copied = max(Path("runs/other/checkpoints").glob("0*"))
    shutil.copytree(copied, Path("runs/tiny/checkpoints") / copied.name)
    if id_file == "empty":
        Path("runs/tiny/run_id").write_text("")
    elif id_file == "gone":
        Path("runs/tiny/run_id").unlink()
    outcome = cli(*command.replace("RUN", "runs/tiny").split())
    assert outcome.code == 2, outcome.out
    assert "the checkpoint is of another run" in outcome.err


def test_weights_are_not_loaded_from_a_checkpoint_that_was_copied_from_another_run(cli, write_config, build):
    for name, frames in (("tiny", 32), ("other", 64)):
        assert cli("train", write_config(run={"name": name}), "--quiet", "--until", frames).code == 0
    copied = max(Path("runs/other/checkpoints").glob("0*"))
    shutil.copytree(copied, Path("runs/tiny/checkpoints") / copied.name)
    run = build()
    for place in ("runs/tiny", "runs/tiny/checkpoints"):
        with pytest.raises(ConfigError, match="the checkpoint is of another run"):
            run.load_weights(Path(place))
    assert run.load_weights(Path("runs/other")) == 64


# the lock


def test_a_lock_that_is_a_link_writes_over_nothing(cli, trained, workdir):
    precious = workdir / "precious"
    precious.write_text("do not lose me")
    (trained / ".lock").unlink()
    (trained / ".lock").symlink_to(precious)
    outcome = cli("train", "--resume", trained, "--quiet")
    assert outcome.code == 2
    assert ".lock is not the lock of a run" in outcome.err
    (trained / ".lock").unlink()
    os.link(precious, trained / ".lock")
    assert ".lock is not the lock of a run" in cli("train", "--resume", trained, "--quiet").err
    assert precious.read_text() == "do not lose me"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_lock_that_is_no_file_is_named(cli, trained, make):
    (trained / ".lock").unlink()
    make(trained / ".lock")
    for command in (("train", "--resume", trained, "--quiet"), ("ckpt", "prune", trained)):
        outcome = cli(*command)
        assert outcome.code == 2
        assert ".lock is not the lock of a run" in outcome.err


# what commands read


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["status.json", "config.toml", "metrics.csv", "evaluations.csv"])
def test_a_pipe_in_the_place_of_a_file_holds_up_no_command(cli, trained, name):
    shutil.copytree(trained, "runs/other")
    (trained / name).unlink(missing_ok=True)
    os.mkfifo(trained / name)
    outcome = cli("runs")
    assert outcome.code == 0
    assert "other" in outcome.out
    for command in ("plot", "report"):
        assert cli(command, trained).code in (0, 2)


def test_one_odd_folder_hides_no_other_run(cli, trained, workdir):
    for number, text in enumerate(
        (
            "",
            "x",
            "[run]",
            "run = 3",
            "[run]\ntotal_frames = 'many'\n[env]\nid = 3\n[loss]\nuse = [1]",
            "[[run]]",
            "a=" * 9,
        )
    ):
        folder = Path(f"runs/odd-{number}")
        (folder / "checkpoints").mkdir(parents=True)
        (folder / "config.toml").write_text(text)
        (folder / "status.json").write_text('{"state": 3, "frames": "x", "losses": [1], "time": {}}')
    Path("runs/list").mkdir()
    Path("runs/list/config.toml").mkdir()
    Path("runs/bytes").mkdir()
    Path("runs/bytes/config.toml").write_bytes(b"\xff\xfe[run]")
    outcome = cli("runs")
    assert outcome.code == 0, outcome.err
    assert "tiny" in outcome.out
    assert json.loads(cli("runs", "--json").out)["data"]["runs"]


def test_no_code_of_a_terminal_is_printed(cli, trained):
    config = run_folder.read_config(trained)
    config["env"]["id"] = "\x1b[2Jgone\x07"
    run_folder.write_config(trained, config)
    trained.rename("runs/\x1b]0;title\x07")
    outcome = cli("runs")
    assert outcome.code == 0
    assert "\\x1b[2Jgone\\x07" in outcome.out
    assert not any(char in outcome.out for char in "\x1b\x07")


def test_a_report_shows_nothing_from_outside_of_the_folder(cli, trained, workdir):
    secret = workdir / "secret.png"
    secret.write_bytes(b"secret of another place")
    away = workdir / "away"
    away.mkdir()
    shutil.copy(secret, away / "b.png")
    (trained / "images").mkdir(exist_ok=True)
    (trained / "images" / "a.png").symlink_to(secret)
    os.link(secret, trained / "images" / "c.png")
    (trained / "videos").symlink_to(away)
    assert cli("report", trained).code == 0
    assert "c2VjcmV0IG9m" not in (trained / "report.html").read_text()


# unlike runs on one figure


def colours_in(file):
    from matplotlib import image

    pixels = (image.imread(file)[..., :3] * 255).round().astype(np.uint8).reshape(-1, 3)
    found = {"#{:02x}{:02x}{:02x}".format(*pixel) for pixel in np.unique(pixels, axis=0)}
    return [colour for colour in COLOURS if colour in found]


def test_unlike_runs_are_lines_of_their_own(cli, write_config, workdir):
    folders = []
    for name, seed, rate in (("one", 1, 0.01), ("two", 2, 0.01), ("other", 1, 0.02)):
        path = write_config(
            run={"name": name, "seed": seed}, optimizer=[{"use": "adam", "lr": rate}], metrics={"every": 16}, **CSV
        )
        assert cli("train", path, "--quiet").code == 0
        folders.append(Path("runs") / name)
    groups = experiments([RunFiles(folder) for folder in folders])
    assert {name: [run.folder.name for run in group] for name, group in groups.items()} == {
        "one": ["one", "two"],
        "other": ["other"],
    }
    for folder in folders[:2]:
        shutil.copytree(folder, workdir / folder.name, ignore=shutil.ignore_patterns("config.toml"))
    unknown = [RunFiles(workdir / folder.name) for folder in folders[:2]]
    assert list(experiments(unknown)) == ["one", "two"], "without a config nothing says that they are alike"
    assert colours_in(plot_runs(folders, workdir / "all.png")) == list(COLOURS[:2])
    assert colours_in(plot_runs(folders[:2], workdir / "alike.png")) == list(COLOURS[:1])


# a full disk


def test_a_status_that_finds_no_room_for_a_new_file_is_written_over_the_old_one(tmp_path, monkeypatch):
    status = run_status.Status(tmp_path)
    status.write("running", 10, "a reason that is longer than the one to come, so that the new text is shorter")

    def full(self, *arguments, **options):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    status.write("failed-resumable", 20, "the disk is full")
    found = run_status.read_status(tmp_path)
    assert (found["state"], found["frames"], found["reason"]) == ("failed-resumable", 20, "the disk is full")
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_a_lock_in_a_folder_that_is_not_there_is_an_error_of_ours(tmp_path):
    with pytest.raises(ConfigError, match="is not the lock of a run"):
        lock.Lock(tmp_path / "absent")
