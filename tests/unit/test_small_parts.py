"""Run folder, signals, random state, context, minibatch, curves."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from rlcore import ConfigError, Context, Minibatch, Progress
from rlcore.errors import StorageError
from rlcore.process.signals import GraceExpired, StopAtOnce, stop_on_signal
from rlcore.process.watchdog import wait_while_moving
from rlcore.reports.curves import mean_and_spread, read_metrics
from rlcore.reports.plotting import plot_runs
from rlcore.run_folder import folder as run_folder
from rlcore.run_folder import status as run_status
from rlcore.state.generators import GlobalGenerators, seed_all
from rlcore.types import EvaluationResult, RunInfo
from rlcore.types.heart import Heart

# run folder


def test_a_run_folder_is_made_once(tmp_path):
    folder = tmp_path / "a" / "b"
    run_folder.make(folder)
    assert list(folder.iterdir()) == [], "the probe is gone"
    with pytest.raises(ConfigError, match="exists already; continue it with --resume"):
        run_folder.make(folder)


def test_a_run_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be made or written to: .*--set run.folder=PATH"):
        run_folder.make(tmp_path / "file" / "run")


def test_the_status_is_replaced_as_a_whole(tmp_path):
    status = run_status.Status(tmp_path)
    assert run_status.read_status(tmp_path) == {}
    status.write("running", 5)
    status.write("done", 10, "reason", Path("x/checkpoint-1"), exact=True, losses={"skipped": 2})
    found = run_status.read_status(tmp_path)
    assert found | {"time": ""} == {
        "state": "done",
        "reason": "reason",
        "frames": 10,
        "checkpoint": "checkpoint-1",
        "pid": os.getpid(),
        "time": "",
        "exact": True,
        "losses": {"skipped": 2},
    }
    assert [file.name for file in tmp_path.iterdir()] == ["status.json"]


def test_a_status_that_cannot_be_written_is_an_error_of_storage(tmp_path):
    with pytest.raises(StorageError, match=r"status.json cannot be written"):
        run_status.Status(tmp_path / "absent").write("running", 0)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff"])
def test_a_damaged_status_reads_as_none(tmp_path, content):
    (tmp_path / "status.json").write_bytes(content)
    assert run_status.read_status(tmp_path) == {}


# signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_for_a_stop_and_handlers_are_put_back(number):
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    reasons = []
    with stop_on_signal(reasons.append) as received:
        os.kill(os.getpid(), number)
        signal.sigtimedwait([], 0.01)
        assert received == [number]
    assert reasons == [number.name]
    assert {each: signal.getsignal(each) for each in before} == before


def test_a_second_interrupt_stops_at_once_and_a_second_termination_does_not():
    reasons = []
    with stop_on_signal(reasons.append):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(StopAtOnce):
            os.kill(os.getpid(), signal.SIGINT)
    assert reasons == ["SIGTERM", "SIGTERM", "SIGINT"]


def test_outside_the_main_thread_no_handler_is_installed():
    before, seen = signal.getsignal(signal.SIGINT), []

    def use():
        with stop_on_signal(lambda reason: None) as received:
            seen.append((signal.getsignal(signal.SIGINT), received))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen == [(before, [])]


HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


def test_handlers_are_put_back_after_an_error():
    before = [signal.getsignal(number) for number in HANDLED]
    with pytest.raises(ZeroDivisionError), stop_on_signal(lambda reason: None):
        1 / 0  # noqa: B018
    assert [signal.getsignal(number) for number in HANDLED] == before


def test_when_the_grace_time_is_over_what_runs_is_interrupted():
    before, alarm = [signal.getsignal(number) for number in HANDLED], signal.getitimer(signal.ITIMER_REAL)[0]
    began = time.monotonic()

    def run():
        with stop_on_signal(lambda reason: None, grace=0.05):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)

    with pytest.raises(GraceExpired, match=r"no safe point within 0.05 s of SIGTERM"):
        run()
    assert time.monotonic() - began < 5
    assert [signal.getsignal(number) for number in HANDLED] == before
    assert (signal.getitimer(signal.ITIMER_REAL)[0] > 0) == (alarm > 0)


def test_the_grace_time_counts_from_the_first_signal():
    began = time.monotonic()

    def run():
        with stop_on_signal(lambda reason: None, grace=0.3):
            while time.monotonic() - began < 5:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.05)

    with pytest.raises(GraceExpired, match="of SIGTERM"):
        run()
    assert time.monotonic() - began < 2


def test_a_stop_within_the_grace_time_is_not_interrupted_afterwards():
    with stop_on_signal(lambda reason: None, grace=0.05):
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)


def test_a_process_that_is_forked_inside_handles_its_own_signals_and_its_parent_hears_of_none():
    reasons = []
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with stop_on_signal(reasons.append, grace=0.1):
            child = os.fork()
            if not child:
                time.sleep(30)
                os._exit(0)
            os.kill(child, signal.SIGTERM)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
            time.sleep(0.3)
        assert reasons == []
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_save_that_moves_may_finish_and_one_that_stands_still_may_not(monkeypatch):
    monkeypatch.setattr("rlcore.process.signals._STANDING", 0.5)
    began, moves = time.monotonic(), 1.0

    def run():
        with stop_on_signal(lambda reason: None, 0.1, saving=lambda: (min(time.monotonic() - began, moves), 1)):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)

    with pytest.raises(GraceExpired):
        run()
    assert moves + 0.4 < time.monotonic() - began < 5


def test_a_sync_in_which_nothing_can_be_seen_to_move_has_its_own_patience(monkeypatch):
    monkeypatch.setattr("rlcore.process.signals._STANDING", 0.2)
    with stop_on_signal(lambda reason: None, 0.1, saving=lambda: ("in a sync", 20)):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.8)


@pytest.mark.parametrize("patience", [1, 20])
def test_a_last_save_is_waited_for_as_long_as_a_sync_may_take(tmp_path, patience):
    heart, release, began = Heart(), threading.Event(), time.monotonic()
    with heart.save(tmp_path) as save:
        save.patience = patience
        saving = threading.Thread(target=release.wait, args=(1.5,), daemon=True)
        saving.start()
        wait_while_moving(saving, heart, 0.5)
    assert (time.monotonic() - began > 1.4) == (patience > 1)
    release.set()
    saving.join()


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]], ids=["grace", "at once"])
def test_a_main_thread_that_does_not_react_is_given_up(monkeypatch, signals):
    """It waits for a lock, and no signal interrupts that."""
    monkeypatch.setattr("rlcore.process.signals._REACTION", 0.2)
    given_up, numbers = threading.Event(), []

    def send():
        for number in signals:
            time.sleep(0.1)
            os.kill(os.getpid(), number)

    def give_up(number):
        numbers.append(number)
        given_up.set()

    def run():
        with stop_on_signal(lambda reason: None, 0.2 if len(signals) == 1 else 30, give_up=give_up):
            signal.pthread_sigmask(signal.SIG_BLOCK, signals)
            threading.Thread(target=send).start()
            assert given_up.wait(5)

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        with pytest.raises((GraceExpired, StopAtOnce)):
            run()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    assert numbers == signals[:1]


def test_a_grace_that_expired_is_no_error_that_could_be_caught_as_one():
    assert not issubclass(GraceExpired, Exception)
    assert not issubclass(StopAtOnce, Exception)


@pytest.fixture
def alarm():
    """The alarm of a program around; put back what was there."""
    rings = []
    before, timer = signal.signal(signal.SIGALRM, lambda *arguments: rings.append(1)), signal.getitimer(0)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    yield rings
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    signal.setitimer(signal.ITIMER_REAL, *timer)


@pytest.mark.parametrize("stopped", [False, True])
def test_an_alarm_of_the_caller_still_rings(alarm, stopped):
    with stop_on_signal(lambda reason: None, grace=10):
        if stopped:
            os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.3)
    assert alarm == [1]


# random state


def draws():
    return random.random(), float(np.random.rand()), float(torch.rand(())), random.gauss(0, 1)


def test_the_state_of_every_global_generator_is_saved_and_restored():
    from rlcore.state.tree import flatten, unflatten

    seed_all(5)
    draws()
    tensors = {}
    tree = json.loads(json.dumps(flatten(GlobalGenerators().state_dict(), "g", tensors)))
    expected = [draws() for _ in range(3)]
    seed_all(6)
    GlobalGenerators().load_state_dict(unflatten(tree, tensors))
    assert [draws() for _ in range(3)] == expected


def test_seeding_seeds_every_generator():
    seed_all(2**62)
    first = draws()
    seed_all(2**62)
    assert draws() == first
    seed_all(2**62 + 1)
    assert all(a != b for a, b in zip(draws(), first, strict=True))


# context


def context(seed=1, **parts):
    return Context(RunInfo("run", seed, 100), torch.device("cpu"), Progress(100), "hook", "mine", parts)


def test_seeds_differ_by_run_kind_name_and_purpose_and_nothing_else():
    base = context()
    others = [context(2), base.for_component("loss", "mine"), base.for_component("hook", "other")]
    seeds = [each.seed() for each in (base, *others)] + [base.seed("purpose")]
    assert len(set(seeds)) == 5
    assert context().seed() == base.seed()
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_generators_are_a_components_own():
    first, second = context().generator("a"), context().generator("a")
    torch.manual_seed(0)
    assert torch.equal(torch.rand(5, generator=first), torch.rand(5, generator=second))
    assert context().numpy_generator().random() == context().numpy_generator().random()
    assert context().generator("b").initial_seed() != context().generator("a").initial_seed()


def test_a_part_that_is_not_built_is_named_with_what_there_is():
    with pytest.raises(ConfigError, match=r"hook 'mine' asks for the buffer, which is not built; there is: env, model"):
        _ = context(env=1, model=2).buffer
    assert context(env=1).env == 1
    assert context().estimator is None


# minibatch


def minibatch():
    gathered = []

    def gather(key):
        gathered.append(key)
        return torch.arange(3.0)

    return Minibatch(3, ("a", ("next", "b")), gather), gathered


def test_an_entry_is_gathered_when_it_is_first_read():
    batch, gathered = minibatch()
    assert len(batch) == 2
    assert ("next", "b") in batch
    assert "c" not in batch
    assert gathered == []
    for _ in range(2):
        assert batch["next", "b"].tolist() == [0, 1, 2]
    assert gathered == [("next", "b")]


def test_a_minibatch_behaves_as_a_mapping():
    batch, _ = minibatch()
    batch["new"] = torch.zeros(3)
    assert list(batch) == list(batch.keys()) == ["a", ("next", "b"), "new"]
    assert [key for key, _ in batch.items()] == list(batch)
    assert len(batch.values()) == len({**batch}) == 3
    assert batch.get("absent") is None
    assert batch.get("a").tolist() == [0, 1, 2]
    assert batch.batch_size == torch.Size([3])
    with pytest.raises(KeyError, match=r"no entry 'absent'; it has a, \('next', 'b'\)"):
        batch["absent"]


def test_an_assigned_entry_replaces_the_one_of_the_batch():
    batch, gathered = minibatch()
    batch["a"] = torch.ones(3)
    assert batch["a"].tolist() == [1, 1, 1]
    assert gathered == []
    assert batch.to_tensordict()["a"].tolist() == [1, 1, 1]


def test_a_minibatch_becomes_a_tensordict():
    batch, _ = minibatch()
    converted = batch.to_tensordict()
    assert tuple(converted.batch_size) == (3,)
    assert converted["next", "b"].tolist() == [0, 1, 2]
    of = Minibatch.of({"a": torch.zeros(4, 2)})
    assert (of.size, of["a"].shape) == (4, (4, 2))


# evaluation result


def test_an_evaluation_gives_means_and_arrays():
    result = EvaluationResult(100, (1, 2), (1.0, 3.0), (10, 20))
    assert (result.mean_return, result.mean_length) == (2.0, 15.0)
    assert result.returns_array().tolist() == [1.0, 3.0]
    assert result.lengths_array().tolist() == [10.0, 20.0]


# curves


def csv_of(folder, rows, text=""):
    folder.mkdir()
    lines = ["frames,key,value", *[f"{frames},{key},{value}" for frames, key, value in rows]]
    (folder / "metrics.csv").write_text("\n".join(lines) + "\n" + text)
    return folder


def test_metrics_are_read_even_when_a_crash_cut_the_last_row(tmp_path):
    run = csv_of(tmp_path / "run", [(0, "a", 1.5), (10, "a", 2), (10, "b", "nan")], "20,a")
    curves = read_metrics(run)
    assert curves["a"] == {0: 1.5, 10: 2.0}
    assert np.isnan(curves["b"][10])


def test_several_curves_become_mean_and_range_where_all_of_them_are():
    grid, mean, lowest, highest = mean_and_spread([{0: 0.0, 20: 20.0}, {10: 0.0, 30: 20.0}])
    assert grid.tolist() == [10, 20]
    assert (mean.tolist(), lowest.tolist(), highest.tolist()) == ([5, 15], [0, 10], [10, 20])


def test_a_figure_is_drawn_of_one_and_of_several_runs(tmp_path):
    rows = [(0, "episode/return", 1), (10, "episode/return", 2), (10, "evaluation/return", 5)]
    runs = [csv_of(tmp_path / name, rows) for name in ("a", "b")]
    for number in (1, 2):
        file = plot_runs(runs[:number], tmp_path / f"{number}.png")
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size > 10_000


def test_a_run_without_loggers_has_the_curve_of_its_evaluations(tmp_path):
    (tmp_path / "evaluations.csv").write_text("frames,seed,return,length\n10,1,1.0,3\n10,2,2.0,5\n20,1,4.0,8\n20,2,")
    assert read_metrics(tmp_path) == {
        "evaluation/return": {10: 1.5, 20: 4.0},
        "evaluation/length": {10: 4.0, 20: 8.0},
    }
    assert plot_runs([tmp_path], tmp_path / "curves.png").is_file()


def test_a_figure_that_cannot_be_drawn_says_why(tmp_path):
    run = csv_of(tmp_path / "run", [(0, "episode/return", 1)])
    nothing = r"absent has no metrics.csv and no evaluations.csv; add a section \[\[logger\]\]"
    with pytest.raises(ConfigError, match=nothing):
        plot_runs([tmp_path / "absent"], tmp_path / "a.png")
    with pytest.raises(ConfigError, match=r"absent/a.png' cannot be written"):
        plot_runs([run], tmp_path / "absent" / "a.png")
    with pytest.raises(ConfigError, match=r"a.nonsense' cannot be written"):
        plot_runs([run], tmp_path / "a.nonsense")
