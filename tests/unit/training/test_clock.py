"""A run is as long as its frames or its updates, and whatever asks how far it is asks that clock."""

from __future__ import annotations

import csv
import json
import logging

import pytest
import torch
from rlcore_plugin_reports.curves import read_metrics
from rlcore_plugin_reports.run_files import RunFiles
from rlcore_plugin_testing.contracts.data_buffer import COLLECTS_NOTHING
from rlcore_plugin_testing.resumed import check_resumed, differing_parts
from rlcore_plugin_testing.small_run import make_config, make_run, make_trainer

from rlcore import ConfigError
from rlcore.checkpoints.manifest import read_manifest, scan
from rlcore.errors import StorageError
from rlcore.run_folder.folder import read_config
from rlcore.types.progress import ENDLESS, Progress

UPDATES = {"run": {**COLLECTS_NOTHING["run"], "total_updates": 40}}
# nothing is collected, and no env is made
DATA = {**COLLECTS_NOTHING, **UPDATES, "env": [], "evaluator": [], "buffer": {"use": "testing:toy-data"}}
EVALUATED = {**DATA, "env": {"use": "testing:toy"}, "evaluator": {"use": "episodes", "episodes": 2, "every": 16}}
COMMON = ("checkpoint.every=16", "metrics.every=8")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A run that collects nothing, at its end, with evaluations in an env and a schedule."""
    folder = tmp_path_factory.mktemp("updates")
    sections = {**EVALUATED, "scheduler": [{"use": "linear"}], "logger": [{"use": "csv"}, {"use": "testing:toy"}]}
    run = make_run(*COMMON, sections=sections, folder=folder)
    run.trainer.train()
    return run


def test_a_run_by_updates_ends_with_them_and_collects_nothing(done):
    progress = done.trainer.progress
    assert (progress.clock, progress.now, progress.total, progress.frames) == ("updates", 40, 40, 0)
    assert progress.fraction == 1.0
    assert progress.iterations == 10
    assert progress.total_frames == ENDLESS


def test_checkpoints_are_due_named_and_sorted_by_updates(done):
    entries = scan(done.folder / "checkpoints").entries
    assert [entry.reached for entry in entries] == [32, 40]
    assert [entry.path.name.partition("-")[0] for entry in entries] == ["000000000032", "000000000040"]
    assert entries[-1].place == "update 40"
    assert entries[-1].manifest["progress"]["clock"] == "updates"


def test_evaluations_are_made_at_updates_and_once_at_the_start(done):
    with (done.folder / "evaluations.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["updates"]) for row in rows] == [place for place in (0, 16, 32, 40) for _ in range(2)]
    assert "frames" not in rows[0]
    assert done.trainer.last_evaluation.frames == 40


def test_tables_and_curves_count_updates(done):
    assert (done.folder / "metrics.csv").read_text().startswith("updates,key,value\n")
    curves = read_metrics(done.folder)
    assert sorted(curves["train/loss_actor"]) == [8, 16, 24, 32, 40]
    assert curves["train/lr"][40] == pytest.approx(0.0, abs=1e-9), "schedules end with the updates"
    assert "time/updates_per_second" in (done.folder / "timings.csv").read_text()
    assert "time/frames_per_second" not in (done.folder / "timings.csv").read_text()


def test_status_and_config_name_the_clock(done):
    assert read_config(done.folder)["run"]["total_updates"] == 40
    assert "total_frames" not in read_config(done.folder)["run"]
    files = RunFiles(done.folder)
    assert (files.clock, files.total, files.speed is not None) == ("updates", 40, True)


def test_a_run_without_any_env_trains_and_resumes_with_the_same_bits(tmp_path):
    whole = make_run(*COMMON, sections=DATA, folder=tmp_path / "whole").trainer
    whole.train()
    first = make_run(*COMMON, sections=DATA, folder=tmp_path / "parts").trainer
    first.stop_at = 20
    first.train()
    assert first.progress.now == 20, "--until counts updates"
    second = make_run(*COMMON, sections=DATA, folder=tmp_path / "parts", resume=True).trainer
    assert second.progress.now == 20
    second.train()
    for mine, theirs in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    digests = [read_manifest(trainer.last_checkpoint)["digest"] for trainer in (whole, second)]
    assert digests[0] == digests[1]


def test_what_is_due_within_an_iteration_of_data_is_done_there(tmp_path):
    """An iteration has 4 updates; rows of metrics, evaluations and checkpoints have intervals of their own."""
    sections = {**EVALUATED, "logger": [{"use": "csv"}]}
    sections["evaluator"] = {**EVALUATED["evaluator"], "every": 5, "at_start": False}
    run = make_run(
        "checkpoint.every=6", "checkpoint.keep_last=9", "metrics.every=10", sections=sections, folder=tmp_path
    )
    run.trainer.stop_at = 33
    run.trainer.train()
    assert run.trainer.progress.now == 33
    assert {0, 6, 12, 18, 24, 30, 33} <= {entry.reached for entry in scan(run.folder / "checkpoints").entries}
    with (run.folder / "evaluations.csv").open() as file:
        assert sorted({int(row["updates"]) for row in csv.DictReader(file)}) == [5, 10, 15, 20, 25, 30]
    assert {10, 20, 30} <= set(read_metrics(run.folder)["progress/updates"])


@pytest.mark.parametrize("stop_at", [7, 8, 21])
def test_where_something_is_due_changes_no_bit_of_a_run_on_data(stop_at, tmp_path):
    """Schedules move between whole iterations, so a stop or a checkpoint within one moves none."""
    sections = {**DATA, "scheduler": [{"use": "linear"}]}
    whole = check_resumed(tmp_path, "checkpoint.every=100", sections=sections, stop_at=stop_at)
    looked = make_trainer("checkpoint.every=3", sections=sections, folder=tmp_path / "looked")
    looked.train()
    assert differing_parts(whole, looked) == []
    assert looked.progress.iterations == 10


@pytest.mark.parametrize("key", ["checkpoint.every", "metrics.every", "evaluator.every"])
def test_an_interval_by_frames_is_refused_where_none_are_collected(key, tmp_path):
    with pytest.raises(
        ConfigError, match=r"every = \{ frames = 16 \} never comes round, as the run collects no frames"
    ):
        make_trainer(f"{key}={{frames=16}}", sections=EVALUATED, folder=tmp_path)


def test_a_run_that_collects_may_count_updates_too():
    sections = {**UPDATES, "run": {**UPDATES["run"], "total_updates": 10}}
    trainer = make_trainer(sections=sections)
    trainer.train()
    assert (trainer.progress.updates, trainer.progress.frames) == (12, 48), "three batches of 4 updates"


def test_a_run_of_frames_says_nothing_of_clocks(tmp_path):
    run = make_run(folder=tmp_path)
    run.trainer.train()
    manifest = read_manifest(run.trainer.last_checkpoint)
    assert "clock" not in manifest["progress"]
    assert "total_updates" not in read_config(run.folder)["run"]
    assert (run.folder / "evaluations.csv").read_text().startswith("frames,seed,return,length\n")


def test_the_last_good_state_is_kept_by_updates(tmp_path):
    class Fails:
        @staticmethod
        def post_steps(trainer):
            if trainer.progress.updates == 12:
                raise RuntimeError("on purpose")

    from rlcore import hookimpl

    Fails.post_steps = staticmethod(hookimpl(Fails.post_steps))
    run = make_run("checkpoint.every=1000", sections=DATA, folder=tmp_path, hooks=[Fails()])
    with pytest.raises(RuntimeError, match="on purpose") as raised:
        run.trainer.train()
    assert "iteration 3, update 12" in "".join(raised.value.__notes__)
    reached = [entry.reached for entry in scan(run.folder / "checkpoints").entries]
    assert reached[0] == 0
    assert all(place < 12 for place in reached), "the iteration that failed is discarded"


def test_a_horizon_can_be_moved_and_a_clock_cannot(tmp_path):
    make_run(*COMMON, sections=DATA, folder=tmp_path).trainer.train()
    longer = make_run(*COMMON, "run.total_updates=48", sections=DATA, folder=tmp_path, resume=True).trainer
    longer.train()
    assert longer.progress.now == 48
    frames = {**EVALUATED, "run": {"name": "toy", "seed": 1, "total_frames": 64, "device": "cpu"}}
    frames |= {"collector": {"use": "local", "frames_per_batch": 16}}
    from rlcore.run.asked import ResumeOptions

    with pytest.raises(StorageError, match="counted in updates, and \\[run\\] total_frames would count it in frames"):
        make_run(*COMMON, sections=frames, folder=tmp_path, resume=ResumeOptions(accept_changes=True))


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"run": {"total_frames": 10, "total_updates": 10}},
            "total_frames = 10 and total_updates = 10 both say how long the run is; leave one out",
        ),
        ({"run": {"name": "none"}}, "total_frames: missing, and the core needs it; or total_updates"),
        ({"run": {"total_updates": 0}}, "total_updates: Input should be greater than 0"),
        ({**DATA, "env": [], "buffer": {"use": "rollout"}}, r"\[env\]: missing; every run needs one"),
    ],
)
def test_what_says_no_length_or_two_is_refused(sections, message):
    with pytest.raises(ConfigError, match=message):
        make_config(sections=sections)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {**EVALUATED, "buffer": {"use": "rollout"}},
            "buffer 'rollout' .* waits for batches, and nothing is",
        ),
        (
            {**EVALUATED, "run": {"total_frames": 10}, "collector": {"use": "none"}},
            "collects no frames, so a run with .run. total_frames never ends",
        ),
        ({**EVALUATED, "estimator": {"use": "testing:toy"}}, "works on batches, and nothing is collected"),
        ({**DATA, "evaluator": {"use": "episodes"}}, r"\[evaluator\]: it plays episodes in the env; add a section"),
    ],
)
def test_what_waits_for_batches_is_refused_where_none_come(sections, message):
    with pytest.raises(ConfigError, match=message):
        make_trainer(sections=sections)


def test_how_many_updates_come_is_known_where_they_are_the_clock():
    sections = {**DATA, "optimizer": [{"use": "adam", "every": 41}]}
    with pytest.raises(ConfigError, match=r"the run makes 40 updates.*total_updates"):
        make_trainer(sections=sections)


def test_progress_lines_speak_of_updates(caplog):
    from rlcore.core_hooks.progress_lines import ProgressLines

    with caplog.at_level(logging.INFO):
        make_trainer(sections=EVALUATED, hooks=[ProgressLines()]).train()
    assert "toy: update 16: evaluation" in caplog.text
    assert "frame" not in caplog.text.replace("frames per second", "")


def test_clocks_as_they_are_saved():
    frames, updates = Progress(100, frames=7), Progress(ENDLESS, updates=5, total_updates=10)
    assert json.loads(json.dumps(frames.state_dict())) == {"frames": 7, "updates": 0, "iterations": 0, "episodes": 0}
    assert updates.state_dict()["clock"] == "updates"
    assert (frames.after(3), updates.after(3)) == (10, 5)
    for one, other in ((frames, updates), (updates, frames)):
        with pytest.raises(ConfigError, match="begin another run"):
            one.load_state_dict(other.state_dict())
