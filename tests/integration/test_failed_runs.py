"""A run that fails, in every phase of the loop: what is saved, what is called, what is raised, and how it goes on."""

from __future__ import annotations

import json

import pytest
import torch
from rlcore_plugin_testing import make_run

from rlcore import hookimpl
from rlcore.checkpoints.manifest import scan
from rlcore.errors import EnvError, NumericalError, RlcoreError, StorageError
from rlcore.state import snapshot

SECTIONS = {"hook": [{"use": "testing:toy"}], "evaluator": {"use": "episodes", "episodes": 2, "every": 16}}
BATCH, END = 16, 96


def make(folder, *overrides, hooks=(), resume=False, every=32, **sections):
    kept = ("checkpoint.keep_last=100", "checkpoint.keep_best=false")
    settings = (f"run.total_frames={END}", f"checkpoint.every={every}", *kept)
    return make_run(*settings, *overrides, hooks=hooks, folder=folder, resume=resume, sections=SECTIONS | sections)


def manifests(folder):
    """Return the manifest of each checkpoint by frame, oldest first."""
    return {entry.frames: entry.manifest for entry in scan(folder / "toy" / "checkpoints").entries}


def digests(folder):
    return {frames: manifest["digest"] for frames, manifest in manifests(folder).items()}


def rows(folder):
    lines = (folder / "toy" / "toy.jsonl").read_text().splitlines()
    return [
        [step, {key: value for key, value in row.items() if not key.startswith("time/")}]
        for step, row in map(json.loads, lines)
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A run that nothing disturbs, saved after each iteration."""
    folder = tmp_path_factory.mktemp("undisturbed")
    make(folder, every=BATCH).trainer.train()
    assert list(digests(folder)) == list(range(0, END + 1, BATCH))
    assert len(set(digests(folder).values())) == END // BATCH + 1
    return folder


@pytest.fixture
def every_boundary(monkeypatch):
    """Keep every boundary, however fast the iterations are."""
    monkeypatch.setattr(snapshot, "_COST_FACTOR", 0)


class OopsError(Exception):
    pass


class FailsAt:
    """Raises at one point, once at or after a frame."""

    def __init__(self, point, frame, error=None):
        self.error = error or OopsError("on purpose")

        def act(trainer=None, learner=None):
            if (trainer or learner).progress.frames >= frame:
                raise self.error

        def inner(learner):
            act(learner=learner)

        def outer(trainer):
            act(trainer=trainer)

        is_inner = point in ("pre_epoch", "process_optim_batch", "post_loss", "post_optim", "post_optim_log")
        setattr(self, point, hookimpl(inner if is_inner or point == "post_epoch" else outer))


class Ending:
    """Notes how the run ends."""

    def __init__(self, calls, name, fails=False):
        self.calls, self.name, self.fails = calls, name, fails

    @hookimpl
    def on_exception(self, error):
        self.calls.append((self.name, error))
        if self.fails:
            raise RuntimeError("another error")

    @hookimpl
    def shutdown(self):
        self.calls.append((self.name, "shutdown"))
        if self.fails:
            raise RuntimeError("another error")


# point, phase, and whether the checkpoint of the failed iteration was committed before
POINTS = [
    ("episode_end", "preparing the batch", False),
    ("batch_process", "preparing the batch", True),  # the frames of its batch do not count yet
    ("pre_steps_log", "preparing the batch", False),
    ("pre_optim_steps", "optimising", False),
    ("post_loss", "optimising", False),
    ("post_optim", "optimising", False),
    ("post_epoch", "optimising", False),
    ("post_steps", "optimising", False),
    ("evaluation", "evaluating", False),
    ("post_steps_log", "logging", False),
    ("checkpoint_saved", "saving", True),
]


@pytest.mark.usefixtures("every_boundary")
@pytest.mark.parametrize("frame", [16, 64])
@pytest.mark.parametrize(("point", "phase", "saved"), POINTS)
def test_a_failed_iteration_is_discarded_and_the_run_goes_on_as_if_it_had_not_failed(
    tmp_path, undisturbed, point, phase, saved, frame
):
    calls, failing = [], FailsAt(point, frame)
    hooks = [Ending(calls, "first", fails=True), failing, Ending(calls, "last", fails=True)]
    trainer = make(tmp_path, hooks=hooks).trainer
    with pytest.raises(OopsError) as raised:
        trainer.train()
    if point == "checkpoint_saved" and frame == 16:  # checkpoints are due every 32 frames
        frame = 32
    assert raised.value is failing.error, "the first error is raised, whatever fails after it"
    blame, place = raised.value.__notes__
    assert f"at point {point!r}" in blame
    assert place.startswith(f"while {phase}, iteration ")
    assert place.endswith(f", frame {frame}")
    assert calls == [("first", failing.error), ("last", failing.error), ("last", "shutdown"), ("first", "shutdown")]

    newest = max(digests(tmp_path))
    assert newest == (frame if saved else frame - BATCH)
    assert digests(tmp_path).items() <= digests(undisturbed).items()

    make(tmp_path, resume=True).trainer.train()
    assert digests(tmp_path)[END] == digests(undisturbed)[END]
    assert rows(tmp_path) == rows(undisturbed)
    assert manifests(tmp_path)[END]["exact"] is True


def test_without_a_recent_boundary_the_newest_checkpoint_stands(tmp_path, undisturbed, monkeypatch):
    monkeypatch.setattr(snapshot, "_COST_FACTOR", 10**9)  # so that only the first boundary is kept
    trainer = make(tmp_path, hooks=[FailsAt("post_steps", 64)]).trainer
    with pytest.raises(OopsError):
        trainer.train()
    assert list(digests(tmp_path)) == [0, 32]
    make(tmp_path, resume=True).trainer.train()
    assert digests(tmp_path)[END] == digests(undisturbed)[END]
    assert rows(tmp_path) == rows(undisturbed)


@pytest.mark.usefixtures("every_boundary")
def test_an_env_that_fails_in_the_middle_of_a_batch(tmp_path, undisturbed):
    trainer = make(tmp_path).trainer
    env = trainer.collector._env
    step, count = env.step, [0]

    def fail(action):
        count[0] += 1
        if count[0] == 3 * BATCH // env.spec.num_envs + 3:
            raise OopsError("simulator gone")
        return step(action)

    env.step = fail
    with pytest.raises(EnvError, match=r"env 'toy' at step 2 .*OopsError: simulator gone") as raised:
        trainer.train()
    assert isinstance(raised.value.__cause__, OopsError)
    assert raised.value.__notes__ == ["while collecting, iteration 3, frame 48"]
    assert max(digests(tmp_path)) == 48
    assert digests(tmp_path).items() <= digests(undisturbed).items()
    make(tmp_path, resume=True).trainer.train()
    assert digests(tmp_path)[END] == digests(undisturbed)[END]


@pytest.mark.usefixtures("every_boundary")
def test_a_failure_in_the_first_iteration_leaves_the_beginning(tmp_path, undisturbed):
    with pytest.raises(OopsError):
        make(tmp_path, hooks=[FailsAt("batch_process", 0)]).trainer.train()
    assert list(digests(tmp_path)) == [0]
    make(tmp_path, resume=True).trainer.train()
    assert digests(tmp_path)[END] == digests(undisturbed)[END]
    assert rows(tmp_path) == rows(undisturbed)


@pytest.mark.parametrize("point", ["setup", "checkpoint_saved", "evaluation"])
def test_a_failure_before_the_first_iteration(tmp_path, undisturbed, point):
    with pytest.raises(OopsError):
        make(tmp_path, hooks=[FailsAt(point, 0)]).trainer.train()
    assert list(digests(tmp_path)) == ([] if point == "setup" else [0])
    make(tmp_path, resume=True).trainer.train()
    assert digests(tmp_path)[END] == digests(undisturbed)[END]
    assert rows(tmp_path) == rows(undisturbed)


@pytest.mark.usefixtures("every_boundary")
def test_a_run_that_fails_again_and_again_still_arrives_at_the_same_state(tmp_path, undisturbed):
    resume, places = False, [("post_loss", 16), ("batch_process", 48), ("post_steps", 48), ("evaluation", 80)]
    for point, frame in places:
        with pytest.raises(OopsError):
            make(tmp_path, hooks=[FailsAt(point, frame)], resume=resume).trainer.train()
        resume = True
    make(tmp_path, resume=True).trainer.train()
    assert digests(tmp_path)[END] == digests(undisturbed)[END]
    assert rows(tmp_path) == rows(undisturbed)


# storage


@pytest.mark.usefixtures("every_boundary")
def test_when_saving_fails_nothing_more_is_saved(tmp_path):
    trainer = make(tmp_path).trainer
    backend = trainer.parts.store._backend
    save, count = backend.save, [0]

    def fail(folder, tensors):
        count[0] += 1
        if count[0] == 3:
            raise OSError(28, "No space left on device")
        save(folder, tensors)

    backend.save = fail
    with pytest.raises(StorageError, match="No space left") as raised:
        trainer.train()
    assert raised.value.__notes__ == ["while saving, iteration 4, frame 64"]
    assert list(digests(tmp_path)) == [0, 32]
    assert count == [3], "a full disk is not tried again"


@pytest.mark.usefixtures("every_boundary")
def test_a_boundary_that_cannot_be_saved_does_not_hide_the_first_error(tmp_path, caplog):
    trainer = make(tmp_path, hooks=[FailsAt("post_steps", 64)]).trainer
    backend = trainer.parts.store._backend
    save = backend.save

    def fail(folder, tensors):
        if trainer.progress.frames >= 64:
            raise OSError(28, "No space left on device")
        save(folder, tensors)

    backend.save = fail
    with pytest.raises(OopsError):
        trainer.train()
    assert "No space left on device" in caplog.text
    assert list(digests(tmp_path)) == [0, 32]


# numbers


class Spoil:
    """Writes a value into a parameter, or into the state of the optimizer, after an iteration."""

    def __init__(self, frame, value, place):
        self.frame, self.value, self.place = frame, value, place

    @hookimpl
    def post_steps(self, trainer):
        if trainer.progress.frames == self.frame:
            with torch.no_grad():
                if self.place == "model":
                    trainer.model.critic.bias.fill_(self.value)
                else:
                    (optimizer,) = trainer.learner.optimizers.values()
                    next(iter(optimizer.state.values()))["exp_avg"].fill_(self.value)


@pytest.mark.usefixtures("every_boundary")
@pytest.mark.parametrize("place", ["model", "optimizer"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("frame", [48, 64], ids=["not due to be saved", "due to be saved"])
def test_what_is_not_finite_is_never_saved(tmp_path, undisturbed, frame, value, place):
    trainer = make(tmp_path, hooks=[Spoil(frame, value, place)]).trainer
    with pytest.raises(RlcoreError) as raised:
        trainer.train()
    if frame == 64:
        assert isinstance(raised.value, NumericalError)
        assert "not finite at frame 64; no checkpoint is made" in str(raised.value)
    found = digests(tmp_path)
    assert max(found) <= frame - BATCH
    assert found.items() <= digests(undisturbed).items()
    make(tmp_path, resume=True).trainer.train()
    assert digests(tmp_path)[END] == digests(undisturbed)[END]


# stops


@pytest.mark.parametrize("frame", [0, 16, 48, 80])
def test_a_stop_writes_what_there_is_and_a_resume_takes_back_what_no_other_run_has(tmp_path, frame):
    class Stop:
        @hookimpl
        def setup(self, trainer):
            if frame == 0:
                trainer.request_stop("enough")

        @hookimpl
        def post_steps(self, trainer):
            if trainer.progress.frames == frame:
                trainer.request_stop("enough")

    def begin(folder, **options):
        return make(folder, "metrics.every=96", evaluator=SECTIONS["evaluator"] | {"every": 64}, **options).trainer

    begin(tmp_path / "whole", every=BATCH).train()
    trainer = begin(tmp_path, hooks=[Stop()])
    trainer.train()
    assert trainer.progress.frames == frame
    assert {step for step, row in rows(tmp_path)} == ({0, 64, 80} if frame == 80 else {0, frame})
    assert max(digests(tmp_path)) == frame
    assert digests(tmp_path)[frame] == digests(tmp_path / "whole")[frame]
    begin(tmp_path, resume=True).train()
    assert rows(tmp_path) == rows(tmp_path / "whole")
    assert digests(tmp_path)[END] == digests(tmp_path / "whole")[END]


def test_a_run_that_was_killed_between_its_last_save_and_its_end_writes_what_it_would_have_written(tmp_path):
    def begin(folder, **options):  # no row is due at the last frame, so the last one is written at the end
        return make(folder, "metrics.every=40", evaluator={"use": "episodes", "episodes": 2}, **options).trainer

    begin(tmp_path / "whole").train()
    with pytest.raises(OopsError):
        begin(tmp_path / "killed", hooks=[FailsAt("checkpoint_saved", END)]).train()
    assert max(digests(tmp_path / "killed")) == END
    begin(tmp_path / "killed", resume=True).train()
    assert rows(tmp_path / "killed") == rows(tmp_path / "whole")
    assert digests(tmp_path / "killed")[END] == digests(tmp_path / "whole")[END]


def test_a_hook_that_fails_at_the_last_checkpoint_does_not_hide_the_first_error(tmp_path, monkeypatch):
    monkeypatch.setattr("rlcore.state.snapshot._COST_FACTOR", 0)

    class Twice:
        @hookimpl
        def post_steps(self, trainer):
            if trainer.progress.frames >= 48:
                raise RuntimeError("the first")

        @hookimpl
        def checkpoint_saved(self, trainer):
            if trainer.progress.frames >= 48:
                raise RuntimeError("the second")

    run = make_run("checkpoint.every=1000", folder=tmp_path, hooks=[Twice()])
    with pytest.raises(RuntimeError, match="the first"):
        run.trainer.train()
    assert run.trainer.parts.store.entries()[-1].frames == 32
