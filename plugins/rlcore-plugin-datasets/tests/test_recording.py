"""Recording while a run trains: whole episodes, each once, whatever happens to the run."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from rlcore_plugin_datasets.dataset import Dataset
from rlcore_plugin_datasets.journal import Journal, read_journal
from rlcore_plugin_testing.small_run import make_run

from rlcore import ConfigError
from rlcore.errors import StorageError

from .test_contracts import SPACES, toy_episodes

LENGTH = "run.total_frames=128"
HOOK = {"hook": [{"use": "datasets:record"}], "checkpoint": {"use": "torch", "every": 32}}


def recorded(folder):
    return list(Dataset(folder / "recorded").episodes())


def same(one, two):
    names = ("observations", "actions", "rewards", "terminations", "truncations")
    return len(one) == len(two) and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for a, b in zip(one, two, strict=True) for name in names
    )


def test_a_run_that_stops_and_resumes_records_each_episode_once(tmp_path):
    whole = make_run(LENGTH, sections=HOOK, folder=tmp_path / "whole")
    whole.trainer.train()
    parts = make_run(LENGTH, sections=HOOK, folder=tmp_path / "parts")
    parts.trainer.stop_at = 96
    parts.trainer.train()
    make_run(LENGTH, sections=HOOK, folder=tmp_path / "parts", resume=True).trainer.train()
    episodes = recorded(whole.folder)
    assert same(episodes, recorded(parts.folder))
    assert len(episodes) == whole.trainer.progress.episodes, "every episode that ended is there"
    dataset = Dataset(whole.folder / "recorded")
    assert (list(dataset.problems()), dataset.metadata.dataset_id) == ([], "toy-v0")
    assert all(not np.array_equal(episode.observations[0], episode.observations[-1]) for episode in episodes)


def test_what_came_after_the_checkpoint_is_cut_off(tmp_path):
    """The process is killed after it recorded more than its checkpoint knows, in the middle of a line."""
    parts = make_run(LENGTH, sections=HOOK, folder=tmp_path)
    parts.trainer.stop_at = 96
    parts.trainer.train()
    file = parts.folder / "recorded.episodes"
    before = file.read_bytes()
    file.write_bytes(before + before.splitlines(keepends=True)[-1] + b"half a line")
    run = make_run(LENGTH, sections=HOOK, folder=tmp_path, resume=True)
    assert file.read_bytes() == before
    run.trainer.train()
    whole = make_run(LENGTH, sections=HOOK, folder=tmp_path / "whole")
    whole.trainer.train()
    assert same(recorded(whole.folder), recorded(parts.folder))
    file.write_bytes(before[:-9])
    with pytest.raises(StorageError, match=r"recorded\.episodes"):
        make_run(LENGTH, sections=HOOK, folder=tmp_path, resume=True)


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_whole_episodes(tmp_path):
    """By SIGKILL: what the file then has is the beginning of what it would have had, and converts to a dataset."""
    script = """
import os, signal, sys
from rlcore_plugin_testing.small_run import make_run
trainer = make_run(*sys.argv[2:], sections={}, folder=sys.argv[1]).trainer
for progress in trainer:
    if progress.frames >= 96:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    script = script.replace("sections={}", f"sections={HOOK!r}")
    command = [sys.executable, "-c", script, str(tmp_path / "killed"), LENGTH]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (file,) = (tmp_path / "killed").rglob("*.episodes")
    killed = list(read_journal(file)[1])
    whole = make_run(LENGTH, sections=HOOK, folder=tmp_path / "whole")
    whole.trainer.train()
    assert killed
    assert same(killed, recorded(whole.folder)[: len(killed)])


@pytest.mark.parametrize(
    ("sections", "message"),
    [({"transform": [{"use": "testing:toy"}]}, "transforms leave them")],
    ids=["a transform"],
)
def test_what_cannot_be_recorded_is_refused(sections, message):
    with pytest.raises(ConfigError, match=message):
        make_run(LENGTH, sections={**HOOK, **sections})


def test_one_of_several_episodes_is_recorded(tmp_path):
    sections = {**HOOK, "hook": [{"use": "datasets:record", "every": 2, "folder": "some"}]}
    run = make_run(LENGTH, sections=sections, folder=tmp_path)
    run.trainer.train()
    assert Dataset(run.folder / "some").metadata.episodes == -(-run.trainer.progress.episodes // 2)


def test_a_damaged_line_is_named(tmp_path):
    journal = Journal(tmp_path / "a.episodes", SPACES)
    for episode in toy_episodes(3):
        journal.append(episode)
    journal.close()
    spaces, episodes = read_journal(journal.path)
    assert spaces == SPACES
    assert same(list(episodes), list(toy_episodes(3)))
    content = journal.path.read_bytes()
    at = content.index(b"\n", content.index(b"\n") + 1) + 50
    journal.path.write_bytes(content[:at] + b"?" + content[at + 1 :])
    with pytest.raises(StorageError, match="line 3: it is damaged"):
        list(read_journal(journal.path)[1])
