"""The contracts of the plugin and of its logger, read back by Trackio's own API."""

import importlib.util
import itertools
import os
import subprocess
import sys
import tempfile

import pytest
from rlcore_plugin_spool.contracts import SpoolingLoggerContract
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.contracts import PluginContract
from rlcore_plugin_testing.contracts.logger import frames_of

from rlcore.cli import command_line as cli
from rlcore.errors import ConfigError, MissingPluginError
from rlcore.loggers import TrackioLogger, get_logger

# Trackio reads it once in a process, at its import
FOLDER = tempfile.TemporaryDirectory(prefix="trackio-")
needs_trackio = pytest.mark.skipif(
    importlib.util.find_spec("trackio") is None,
    reason="needs trackio, which wants a Pillow before 13: pip install trackio",
)


@pytest.fixture(autouse=True, scope="module")
def own_folder():
    """No project of whoever runs the tests is touched, by this process and by senders."""
    assert "trackio" not in sys.modules
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACKIO_DIR", FOLDER.name)
        yield


class TestPlugin(PluginContract):
    plugin = "trackio"


class Project:
    """What Trackio's own API says of a project."""

    def __init__(self, name):
        import trackio
        from trackio.sqlite_storage import SQLiteStorage

        self.storage, self.name = SQLiteStorage, name
        runs = trackio.Api().runs(name) if name in SQLiteStorage.get_projects() else []
        self.runs = sorted(runs, key=lambda run: run.config["_Created"] if run.config else "")

    def logged(self, run):
        """Yield (step, name, value) of all that was logged."""
        for row in self.storage.get_logs(self.name, run.name, run_id=run.id):
            for name in row.keys() - {"step", "timestamp"}:
                yield row["step"], name.removeprefix("__"), row[name]

    def rows(self, run):
        rows = {}
        for step, name, value in self.logged(run):
            if not isinstance(value, dict):
                assert name not in rows.setdefault(step, {}), f"{name} stands twice at {step}"
                rows[step][name] = value
        return sorted(rows.items())


@needs_trackio
class TestTrackio(SpoolingLoggerContract):
    use = "trackio"
    shows = frozenset({"histogram", "image", "video", "text"})
    asks_what_arrived = True

    @pytest.fixture(autouse=True)
    def project(self, tmp_path):
        self.config = {"project": tmp_path.name[-60:].replace("_", "-")}
        yield
        self.config = {}

    def tracked(self):
        return Project(self.config["project"])

    def read_back(self, folder):
        tracked = self.tracked()
        assert len(tracked.runs) < 2, "a resume made another run"
        return tracked.rows(tracked.runs[0]) if tracked.runs else []

    def read_runs(self, folder):
        tracked = self.tracked()
        for before, run in itertools.pairwise(tracked.runs):
            assert run.config["_Continues"] == before.id
        return [tracked.rows(run) for run in tracked.runs]

    def read_media(self, folder):
        tracked, media = self.tracked(), {}
        for step, name, value in tracked.logged(tracked.runs[0]):
            kind = value.get("_type", "").removeprefix("trackio.") if isinstance(value, dict) else ""
            if kind == "histogram":
                media[kind, name, step] = value["values"], value["bins"]
            elif kind == "markdown":
                media["text", name, step] = value["_value"]
            elif kind:
                with open(os.path.join(FOLDER.name, "media", value["file_path"]), "rb") as stream:
                    frames = frames_of(stream)
                media[kind, name, step] = frames if kind == "video" else frames[0]
        return media

    def read_hparams(self, folder):
        (run,) = self.tracked().runs
        assert run.config["hook.0.use"] == "a:b"
        return {"run": {"seed": run.config["run.seed"]}}

    @pytest.mark.parametrize("project", ["registry-a", "a_system", "../up", "a b", "", "a.b"])
    def test_a_name_that_trackio_refuses_or_changes_is_refused(self, project):
        with pytest.raises(ValueError, match="project"):
            self.settings(project=project)

    def test_needs_a_run_folder(self):
        with pytest.raises(ConfigError, match="run folder"):
            self.make(self.bench())


OFFLINE = """
import os, sys, time
from pathlib import Path
reached = []
sys.addaudithook(lambda event, _: event in ("socket.connect", "socket.getaddrinfo") and reached.append(event))
from rlcore_plugin_trackio.log_server import TrackioLogServer
server = TrackioLogServer("offline", "one", None)
server.connect("", "token", "")
server.send([{"kind": "metrics", "values": {"a": 1.0}, "step": 1, "time": time.time()}], Path("."))
server.disconnect()
assert not reached, reached
"""


@needs_trackio
def test_nothing_is_asked_of_the_net():
    subprocess.run([sys.executable, "-c", OFFLINE], check=True)
    assert Project("offline").rows(Project("offline").runs[0]) == [(1, {"a": 1.0})]


@needs_trackio
def test_a_logger_of_its_own(tmp_path):
    logger = get_logger("trackio", str(tmp_path), "trial", trackio_kwargs={"project": "games", "process": False})
    logger.log_scalar("a", 1.0, 3)
    assert logger.catch_up(60)
    assert (logger.experiment.name, logger.experiment.project) == ("trial", "games")
    logger.close()
    assert Project("games").rows(Project("games").runs[0]) == [(3, {"a": 1.0})]
    for arguments in (("../up", "games"), ("trial", "registry-a")):
        with pytest.raises(ConfigError, match="TrackioLogger: "):
            TrackioLogger(*arguments)


@needs_trackio
@pytest.mark.slow
def test_a_run_goes_on_without_its_database_which_is_written_later(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    section = {"use": "trackio", "project": "later", "group": "night"}
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "file"))
    run = make_run(folder=tmp_path, sections={"logger": [section]})
    run.trainer.train()
    assert run.trainer.progress.frames == 64
    (writer,) = run.trainer.metrics.writers
    assert writer.unsent
    monkeypatch.setenv("TRACKIO_DIR", FOLDER.name)
    assert cli.main(["sync", str(tmp_path / "toy")]) == 0
    (found,) = Project("later").runs
    assert [step for step, _ in Project("later").rows(found)] == [0, 16, 32, 48, 64]
    assert (found.name, found.config["_Group"], found.config["run.total_frames"]) == ("toy", "night", 64)


@pytest.mark.skipif(importlib.util.find_spec("trackio") is not None, reason="trackio is installed")
def test_without_trackio_the_error_says_what_to_install(tmp_path):
    with pytest.raises(MissingPluginError, match="pip install trackio"):
        make_run(folder=tmp_path, sections={"logger": [{"use": "trackio"}]})
