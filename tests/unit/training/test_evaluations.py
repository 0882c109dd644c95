"""Evaluations in a run from a config and in a script: intervals, table of episodes, best checkpoint, few envs."""

import csv

import pytest
from rlcore_plugin_testing import make_run

from rlcore import CheckpointRotation, Factory, hookimpl
from rlcore.errors import ConfigError, NoCheckpointError
from rlcore.run.saved import read_saved
from rlcore.training.evaluations import COLUMNS, TABLE


class Seen:
    """Keeps the results of evaluations; what they returned last is worth `values` in turn."""

    def __init__(self):
        self.results = []

    @hookimpl
    def evaluation(self, result):
        self.results.append(result)


def from_config(folder, seen, evaluator, total_frames=64, resume=False):
    sections = {"evaluator": {"use": "episodes", **evaluator}, "env": {"use": "testing:toy", "reward": "aim"}}
    run = make_run(f"run.total_frames={total_frames}", hooks=[seen], folder=folder, sections=sections, resume=resume)
    return run.trainer, folder / "toy"


def from_script(folder, seen, evaluator, total_frames=64, resume=False):
    folder = folder / "script"
    make = Factory(total_frames=total_frames, folder=folder)
    make.env("testing:toy", reward="aim")
    make.model("testing:toy")
    make.estimator("testing:toy")
    make.loss("testing:toy")
    make.collector(frames_per_batch=16)
    make.buffer(epochs=2, minibatch_size=8)
    make.evaluator(**evaluator)
    trainer = make.trainer(
        optimizer=make.optimizer("adam", lr=0.01),
        hooks=[seen],
        progress_bar=False,
        save_trainer_interval=32,
        checkpoint_rotation=CheckpointRotation(folder / "checkpoints"),
    )
    if resume:
        trainer.load_from_file(folder / "checkpoints")
    return trainer, folder


BOTH = pytest.mark.parametrize("begin", [from_config, from_script])


def rows(folder):
    with (folder / TABLE).open(newline="") as stream:
        return list(csv.reader(stream))


@BOTH
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"every": 32}, [0, 32, 64]),
        ({"every": 32, "at_start": False}, [32, 64]),
        ({"every": {"iterations": 1}, "at_start": False}, [16, 32, 48, 64]),
        ({}, [0, 64]),
        ({"at_start": False}, [64]),
    ],
    ids=str,
)
def test_evaluations_come_when_they_are_due(tmp_path, begin, keys, expected):
    seen = Seen()
    trainer, _ = begin(tmp_path, seen, keys)
    trainer.train()
    assert [result.frames for result in seen.results] == expected
    assert trainer.last_evaluation == seen.results[-1]


@BOTH
def test_every_episode_is_a_row(tmp_path, begin):
    seen = Seen()
    trainer, folder = begin(tmp_path, seen, {"every": 32, "episodes": 3, "seed": 7})
    trainer.train()
    header, *found = rows(folder)
    assert tuple(header) == COLUMNS
    expected = [
        (result.frames, seed, return_, length)
        for result in seen.results
        for seed, return_, length in zip(result.seeds, result.returns, result.lengths, strict=True)
    ]
    assert [(int(a), int(b), float(c), int(d)) for a, b, c, d in found] == expected
    assert len(found) == 9
    assert [row[1] for row in found[:3]] == ["7", "8", "9"]


@BOTH
def test_a_resumed_run_has_the_table_of_one_without_a_stop(tmp_path, begin):
    keys = {"every": 16, "episodes": 2}
    whole, expected = begin(tmp_path / "whole", Seen(), keys)
    whole.train()
    stopped, folder = begin(tmp_path / "parts", Seen(), keys)
    stopped.stop_at = 32
    stopped.train()
    written = (folder / TABLE).read_bytes()
    with (folder / TABLE).open("ab") as stream:  # by a process that was killed before its next checkpoint
        stream.write(b"48,10000,1.0,3\n")
    resumed, _ = begin(tmp_path / "parts", Seen(), keys, resume=True)
    assert (folder / TABLE).read_bytes() == written
    resumed.train()
    assert (folder / TABLE).read_bytes() == (expected / TABLE).read_bytes()
    assert len(rows(folder)) == 1 + 2 * 5


def test_a_second_run_in_the_folder_of_a_script_begins_its_own_table(tmp_path):
    for _ in range(2):
        trainer, folder = from_script(tmp_path, Seen(), {"episodes": 2})
        trainer.train()
    assert len(rows(folder)) == 1 + 2 * 2


def test_without_a_folder_no_table_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_run(sections={"evaluator": {"use": "episodes", "episodes": 1}}).trainer.train()
    assert not list(tmp_path.iterdir())


def test_a_table_that_is_gone_starts_over(tmp_path):
    stopped, folder = from_config(tmp_path, Seen(), {"every": 16, "episodes": 2})
    stopped.stop_at = 32
    stopped.train()
    (folder / TABLE).unlink()
    from_config(tmp_path, Seen(), {"every": 16, "episodes": 2}, resume=True)[0].train()
    header, *found = rows(folder)
    assert tuple(header) == COLUMNS
    assert {row[0] for row in found} == {"48", "64"}


@BOTH
def test_the_checkpoint_of_the_best_evaluation_is_kept(tmp_path, begin, monkeypatch):
    seen = Seen()
    trainer, _ = begin(tmp_path, seen, {"every": 16, "episodes": 1}, total_frames=128)
    evaluate = trainer.evaluator.evaluate
    values = iter([9.0, 1.0, 5.0, 2.0, 3.0, 4.0, 1.0, 0.0, 2.0])  # the first is of the untrained network

    def known():
        result = evaluate()
        return type(result)(result.frames, result.seeds, (next(values),), result.lengths)

    monkeypatch.setattr(trainer.evaluator, "evaluate", known)
    trainer.train()
    kept = [entry.frames for entry in trainer.parts.store.entries()]
    assert kept == [32, 96, 128], "the best, and the two latest"
    assert trainer.parts.store.best().frames == 32
    assert trainer.best_evaluation.mean_return == 5


def test_what_was_never_trained_is_never_the_best(tmp_path, monkeypatch):
    """Neither at frame 0 nor in a warm-up, in which frames pass and nothing is learned."""
    sections = {"evaluator": {"use": "episodes", "every": 16, "episodes": 1}, "checkpoint": {"use": "torch"}}
    trainer = make_run(folder=tmp_path, sections=sections).trainer
    evaluate = trainer.evaluator.evaluate
    values = iter([9.0, 8.0, 1.0, 2.0, 0.0])

    def known():
        result = evaluate()
        return type(result)(result.frames, result.seeds, (next(values),), result.lengths)

    monkeypatch.setattr(trainer.evaluator, "evaluate", known)
    trainer.parts.buffer.warmup_frames = 32  # the first update comes at frame 32
    trainer.evaluate()
    trainer.save()
    assert trainer.parts.store.entries()[-1].evaluation == 9
    assert trainer.best_evaluation is None
    assert trainer.parts.store.best() is None
    with pytest.raises(NoCheckpointError, match="none is the best"):
        read_saved(tmp_path / "toy", True, True)
    trainer.train()
    assert trainer.best_evaluation.mean_return == 2
    assert trainer.parts.store.best().evaluation == 2
    assert read_saved(tmp_path / "toy", True, True).frames == 48


def cart_pole(vectorization):
    make = Factory(total_frames=100)
    make.env("gymnasium", id="CartPole-v1", vectorization=vectorization)
    make.transform("transforms:frame-stack", frames=2)
    make.model("mlp", hidden=[8])
    return make


@pytest.mark.parametrize("num_envs", [1, 2, 3, 5, 7, 20])
def test_few_envs_give_the_episodes_of_many(num_envs):
    make = cart_pole("serial")
    result = make.evaluator(episodes=7, num_envs=num_envs).evaluate()
    assert result == make.evaluator(episodes=7).evaluate()
    assert len(set(result.lengths)) > 1, "episodes of one length would not show a bias"


def test_many_episodes_take_turns_in_at_most_a_hundred_envs(monkeypatch):
    """As many emulators as there are episodes may not fit into memory."""
    make = cart_pole("serial")
    evaluator = make.evaluator(episodes=250)
    make_env, sizes = evaluator._make_env, []
    monkeypatch.setattr(evaluator, "_make_env", lambda num_envs: sizes.append(num_envs) or make_env(num_envs))
    assert evaluator.evaluate() == make.evaluator(episodes=250, num_envs=50).evaluate()
    assert sizes == [100]


def test_few_natively_vectorised_envs_run_whole_episodes():
    """They share a generator, so that the episodes are others than those of many envs."""
    result = cart_pole("native").evaluator(episodes=5, num_envs=2).evaluate()
    assert result.seeds == (10_000, 10_001, 10_002, 10_003, 10_004)
    assert result.returns == tuple(float(length) for length in result.lengths)
    assert all(length > 5 for length in result.lengths)


def test_an_evaluation_without_envs_is_refused():
    make = Factory(total_frames=100)
    make.env("testing:toy")
    make.model("testing:toy")
    with pytest.raises(ConfigError, match="num_envs"):
        make.evaluator(num_envs=0)
