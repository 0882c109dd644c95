"""Ranks that train together are one run: what it learns, counts and saves, whatever the share of each."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_testing.ranks import digests, in_ranks
from rlcore_plugin_testing.small_run import make_config

from rlcore.checkpoints.manifest import scan
from rlcore.errors import RlcoreError
from rlcore.hooks.specs import hookimpl
from rlcore.run.asked import ResumeOptions
from rlcore.run.build import build
from rlcore.types import Alone

SECTIONS = {
    "env": {"use": "testing:toy", "num_envs": 4},
    "collector": {"use": "local", "frames_per_batch": 32},
    "buffer": {"use": "rollout", "epochs": 2, "minibatch_size": 32},
    "checkpoint": {"use": "testing:toy", "every": 32},
}
SMALLER = {**SECTIONS, "buffer": {"use": "rollout", "epochs": 2, "minibatch_size": 8}}


def train(folder, *overrides, count=2, sections=SECTIONS, resume=False, prepare=lambda run, group: None):
    """Train in several ranks, and return the run of each."""
    config = make_config(f"ranks.count={count}", *overrides, sections=sections, folder=folder)
    config.run.place.mkdir(exist_ok=True)

    def rank(group):
        run = build(config, group=group, resume=resume)
        prepare(run, group)
        run.trainer.train()
        return run

    return in_ranks(count, rank)


def weights(run):
    return run.trainer.parts.model.state_dict()


def manifest(folder):
    return scan(folder / "checkpoints").entries[-1].manifest


class Batches:
    """Keeps the first batch."""

    def __init__(self):
        self.first = None

    @hookimpl
    def batch_process(self, batch):
        self.first = batch.clone() if self.first is None else self.first


@pytest.mark.parametrize("count", [2, 4])
def test_ranks_on_shares_of_a_batch_learn_what_one_process_learns_on_the_whole(tmp_path, count):
    alone = build(make_config(sections=SECTIONS, folder=tmp_path))
    alone.trainer.train()
    ranks = train(tmp_path, "run.name=several", count=count)
    for name, expected in weights(alone).items():
        found = [weights(run)[name] for run in ranks]
        torch.testing.assert_close(found[0], expected, rtol=1e-5, atol=1e-7)
        assert all(torch.equal(other, found[0]) for other in found[1:])
    clocks = [run.trainer.progress.state_dict() for run in (alone, *ranks)]
    assert all(clock == clocks[0] for clock in clocks)


def test_ranks_together_have_the_envs_and_the_actions_of_one_process(tmp_path):
    hooks = [Batches() for _ in range(3)]
    config = make_config(sections=SECTIONS)
    build(config, write=False, hooks=[hooks[0]]).trainer.train()
    two = make_config("ranks.count=2", sections=SECTIONS)
    in_ranks(2, lambda group: build(two, write=False, group=group, hooks=[hooks[1 + group.rank]]).trainer.train())
    both = torch.cat([hooks[1].first, hooks[2].first])
    for key in ("observation", "action", ("next", "reward"), ("next", "done")):
        torch.testing.assert_close(both[key], hooks[0].first[key])


def test_two_ranks_twice_end_with_the_same_digest(tmp_path):
    for name in ("first", "second"):
        train(tmp_path, f"run.name={name}", sections=SMALLER)
    first, second = digests(tmp_path / "first"), digests(tmp_path / "second")
    assert first == second
    assert {"model", "learner", "buffer", "collector", "rank-1/buffer", "rank-1/collector"} <= set(first)


def test_a_checkpoint_holds_what_each_rank_has_of_its_own(tmp_path):
    train(tmp_path)
    found = digests(tmp_path / "toy")
    assert found["buffer"] != found["rank-1/buffer"]  # another shuffle of other samples
    assert found["collector"] != found["rank-1/collector"]
    assert "rank-1/model" not in found  # it is the same on all


def test_ranks_go_on_from_a_checkpoint_to_the_bits_of_a_run_that_did_not_stop(tmp_path):
    train(tmp_path, "run.name=whole", "run.total_frames=128", sections=SMALLER)
    train(tmp_path, "run.total_frames=64", sections=SMALLER)
    train(tmp_path, "run.total_frames=128", sections=SMALLER, resume=ResumeOptions())
    assert digests(tmp_path / "toy") == digests(tmp_path / "whole")


@pytest.mark.parametrize("count", [1, 4])
def test_another_number_of_ranks_is_another_run(tmp_path, count):
    train(tmp_path)
    with pytest.raises(RlcoreError, match=rf"ranks\.count = {count} here, 2 in the run"):
        train(tmp_path, count=count, resume=ResumeOptions())


def test_another_number_of_ranks_begins_new_episodes_where_that_is_accepted(tmp_path):
    train(tmp_path)
    train(tmp_path, "run.total_frames=128", count=4, resume=ResumeOptions(accept_changes=True))
    assert any("ranks.count" in reason for reason in manifest(tmp_path / "toy")["inexact"])


def test_a_state_that_was_kept_after_the_first_evaluation_is_not_evaluated_again(tmp_path):
    class Fails:
        @hookimpl
        def batch_process(self):
            raise RuntimeError("on purpose")

    config = make_config(sections={**SECTIONS, "logger": [{"use": "csv"}]}, folder=tmp_path)
    config.run.place.mkdir()
    first = build(config, group=Alone(), hooks=[Fails()]).trainer
    with pytest.raises(RuntimeError, match="on purpose"):
        first.train()
    kept = first.saver.last_good.snapshot
    assert kept.reached == 0
    rows = [(tmp_path / "toy" / name).read_text() for name in ("evaluations.csv", "metrics.csv")]
    again = build(config, group=Alone(), resume=True, kept=kept).trainer
    again.stop_at = 0
    again.train()
    assert [(tmp_path / "toy" / name).read_text() for name in ("evaluations.csv", "metrics.csv")] == rows
    assert len(rows[0].splitlines()) == 1 + 3


def test_only_the_first_rank_writes_evaluates_and_shows(tmp_path):
    bar = {**SECTIONS, "hook": [{"use": "core:console-table"}, {"use": "reward-clip", "limit": 1.0}]}
    first, second = train(tmp_path, sections=bar)
    names = [[hook.name for hook in run.trainer.parts.hooks.hooks] for run in (first, second)]
    assert names == [["console-table", "reward-clip"], ["reward-clip"]]
    assert first.trainer.parts.evaluator is not None
    assert second.trainer.parts.evaluator is None
    assert second.trainer.saver is None
    assert second.trainer.parts.metrics.writers == []


def test_what_becomes_different_on_one_rank_is_found_at_the_next_checkpoint(tmp_path):
    class Spoils:
        @hookimpl
        def post_steps(self, trainer):
            with torch.no_grad():
                next(trainer.parts.model.parameters()).add_(1.0)

    config = make_config("ranks.count=2", sections=SECTIONS, folder=tmp_path)
    config.run.place.mkdir()
    hooks = {0: [], 1: [Spoils()]}
    with pytest.raises(RlcoreError, match="the model is not the same on all ranks"):
        in_ranks(2, lambda group: build(config, group=group, hooks=hooks[group.rank]).trainer.train())


def test_a_stop_on_one_rank_stops_all_at_the_same_frame(tmp_path):
    class Stops:
        @hookimpl
        def post_steps(self, trainer):
            trainer.request_stop("enough")

    config = make_config("ranks.count=2", "run.total_frames=3200", sections=SECTIONS, folder=tmp_path)
    config.run.place.mkdir()
    hooks = {0: [], 1: [Stops()]}

    def rank(group):
        run = build(config, group=group, hooks=hooks[group.rank])
        run.trainer.train()
        return run.trainer.progress.frames

    assert in_ranks(2, rank) == [64, 64]  # after the iteration in which all heard of it
    assert manifest(tmp_path / "toy")["progress"]["frames"] == 64


NORMS = {"use": "transforms:running-observation-norm"}, {"use": "transforms:reward-norm"}
OF_EPISODES = {"use": "transforms:frame-stack"}, {"use": "transforms:reward-sum"}


@pytest.mark.parametrize("transforms", [NORMS, OF_EPISODES], ids=["that learn", "that carry episodes"])
def test_with_transforms_ranks_go_on_to_the_bits_and_rows_of_a_run_that_did_not_stop(tmp_path, transforms):
    sections = {**SECTIONS, "transform": transforms, "logger": [{"use": "csv"}]}
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()

    def stop_half_way(run, group):
        run.trainer.stop_at = 32

    whole = train(tmp_path / "whole", sections=sections)
    train(tmp_path / "parts", sections=sections, prepare=stop_half_way)
    parts = train(tmp_path / "parts", sections=sections, resume=True)
    for one, other in zip(whole, parts, strict=True):
        assert one.trainer.progress.frames == other.trainer.progress.frames == 64
        assert all(map(torch.equal, weights(one).values(), weights(other).values()))
    rows = [next((tmp_path / name).rglob("metrics.csv")).read_text() for name in ("whole", "parts")]
    assert "episode/return/count" in rows[0]
    assert rows[0] == rows[1]
