"""One test per point, named after it: when it is called, with what, and what its return value does."""

from __future__ import annotations

import pytest
import torch

from rlcore import EvaluationResult, hookimpl
from rlcore.errors import HookError
from rlcore.hooks.specs import POINTS

ITERATIONS, EPOCHS, MINIBATCHES = 3, 2, 2  # of the tiny run: 96 frames, batches of 32, minibatches of 16


class Trace:
    """Notes the name of every point that is called."""

    def __init__(self):
        self.names = []
        for name in POINTS:
            if name != "optimizer":
                setattr(self, name, hookimpl(self._noting(name)))

    def _noting(self, name):
        def note():
            self.names.append(name)

        return note


def weights(module):
    return torch.cat([parameter.detach().flatten().clone() for parameter in module.parameters()])


def test_every_point_has_a_test_of_its_name():
    missing = [name for name in POINTS if f"test_{name}" not in globals()]
    assert not missing, f"write a test for each of these points in {__name__}: {', '.join(missing)}"


def test_points_are_called_in_the_order_of_the_loop(build):
    trace = Trace()
    build([trace], evaluator={"use": "episodes", "episodes": 1, "every": 32}, write=True).trainer.train()
    inner = ["process_optim_batch", "post_loss", "post_optim", "post_optim_log"]
    epoch = ["pre_epoch_log", "pre_epoch", *(inner * MINIBATCHES), "post_epoch_log", "post_epoch"]
    iteration = [
        "batch_process",
        "pre_steps_log",
        "pre_optim_steps",
        *(epoch * EPOCHS),
        "post_optim_complete_log",
        "post_steps",
        "evaluation",
        "post_steps_log",
        "checkpoint_saved",
    ]
    seen = [name for name in trace.names if name != "episode_end"]
    assert seen == ["setup", "checkpoint_saved", "evaluation", *(iteration * ITERATIONS), "shutdown"]


def test_batch_process(build):
    class First:
        def __init__(self):
            self.calls = []

        @hookimpl
        def batch_process(self, batch, trainer):
            self.calls.append((trainer, tuple(batch.batch_size), trainer.progress.frames, trainer.progress.updates))
            changed = batch.clone()
            changed["next", "reward"].fill_(5.0)
            return changed

    class Second:
        def __init__(self):
            self.seen = []

        @hookimpl
        def batch_process(self, batch):
            self.seen.append(batch["next", "reward"].unique().tolist())

        @hookimpl
        def process_optim_batch(self, minibatch):
            self.seen.append(minibatch["next", "reward"].unique().tolist())

    first, second = First(), Second()
    run = build([first, second])
    run.trainer.train()
    # after collection, before the frames of the batch are counted, and before its updates
    assert first.calls == [(run.trainer, (1, 32), 32 * n, 4 * n) for n in range(3)]
    # what the first returned is what everyone after it sees; None left it as it was
    assert second.seen == [[5.0]] * ITERATIONS * (1 + EPOCHS * MINIBATCHES)


def test_pre_steps_log(build):
    class Log:
        def __init__(self):
            self.calls = []

        @hookimpl
        def pre_steps_log(self, batch, trainer):
            self.calls.append((trainer.progress.frames, trainer.progress.updates))
            return {"mine/frames": trainer.progress.frames, "mine/reward": batch["next", "reward"]}

    log = Log()
    run = build([log], metrics={"every": 1000})
    run.trainer.train()
    assert log.calls == [(32, 0), (64, 4), (96, 8)]
    latest = run.trainer.metrics.latest
    assert (latest["mine/frames"], latest["mine/frames/count"]) == (64.0, 3.0)
    assert (latest["mine/reward"], latest["mine/reward/count"]) == (1.0, 96.0)


def test_pre_optim_steps(build):
    class Note:
        def __init__(self):
            self.calls = []

        @hookimpl
        def pre_optim_steps(self, batch, trainer):
            self.calls.append((trainer.progress.frames, trainer.progress.updates, "advantage" in batch))

    note = Note()
    run = build([note])
    run.trainer.buffer.warmup_frames = 64
    run.trainer.train()
    # not before the buffer wants to be trained on, and before the estimator and the first epoch
    assert note.calls == [(64, 0, False), (96, 4, False)]


def test_pre_epoch(build):
    class Double:
        def __init__(self):
            self.calls = []
            self.means = []

        @hookimpl
        def pre_epoch(self, batch, learner):
            self.calls.append((learner, learner.progress.updates, "advantage" in batch))
            return batch.clone().set("mark", torch.full((1, 32, 1), float(len(self.calls))))

        @hookimpl
        def process_optim_batch(self, minibatch):
            self.means.append((minibatch["mark"].mean().item(), "advantage" in minibatch))

        @hookimpl
        def post_epoch(self, batch):
            assert batch["mark"].mean().item() == len(self.calls)

    hook = Double()
    run = build([hook], estimator={"every": "epoch"})
    run.trainer.train()
    learner = run.trainer.learner
    # before each epoch, with the collected batch; an estimator with every = "epoch" works on what was returned
    updates = range(0, ITERATIONS * EPOCHS * MINIBATCHES, MINIBATCHES)
    assert hook.calls == [(learner, count, False) for count in updates]
    epochs = [float(1 + index // MINIBATCHES) for index in range(ITERATIONS * EPOCHS * MINIBATCHES)]
    assert hook.means == [(epoch, True) for epoch in epochs]


def test_process_optim_batch(build):
    class NoAdvantage:
        def __init__(self):
            self.calls = []

        @hookimpl
        def process_optim_batch(self, minibatch, learner):
            self.calls.append((learner, minibatch["observation"].shape, learner.progress.updates))
            changed = {key: minibatch[key] for key in ("observation", "action", "sample_log_prob", "value_target")}
            return {**changed, "advantage": torch.zeros_like(minibatch["advantage"])}

    hook = NoAdvantage()
    run = build([hook])
    run.trainer.train()
    assert hook.calls == [(run.trainer.learner, (16, 4), count) for count in range(12)]
    latest = run.trainer.metrics.latest
    assert latest["train/loss_objective"] == 0
    assert latest["train/loss_critic"] > 0


def test_post_loss(build):
    class CriticOnly:
        def __init__(self):
            self.calls = []

        @hookimpl
        def post_loss(self, losses, minibatch, learner):
            before = weights(learner.model.critic)
            self.calls.append((sorted(losses), len(minibatch["observation"]), learner.progress.updates, before))
            return {"loss_critic": losses["loss_critic"]}

    hook = CriticOnly()
    run = build([hook])
    actor, critic = weights(run.trainer.model.actor), weights(run.trainer.model.critic)
    run.trainer.train()
    names, size, updates, before = hook.calls[0]
    assert {"loss_objective", "loss_critic", "loss_entropy"} <= set(names)
    assert (size, updates) == (16, 0)
    assert torch.equal(before, critic), "called before the step"
    assert len(hook.calls) == 12
    # only the loss that was returned is minimised
    assert torch.equal(weights(run.trainer.model.actor), actor)
    assert not torch.equal(weights(run.trainer.model.critic), critic)
    assert "train/loss_objective" not in run.trainer.metrics.latest


class Frozen:
    @hookimpl
    def optimizer(self, losses, minibatch, learner):
        return {"answer": torch.tensor(42.0), "size": torch.tensor(float(len(minibatch["observation"])))}


class LearnersOwnStep:
    @hookimpl
    def optimizer(self, losses, learner):
        return learner.step(losses)


def test_optimizer(build):
    frozen = build([Frozen()])
    before = weights(frozen.trainer.model)
    frozen.trainer.train()
    assert torch.equal(weights(frozen.trainer.model), before), "the hook steps in place of the learner"
    latest = frozen.trainer.metrics.latest
    assert (latest["train/answer"], latest["train/size"]) == (42.0, 16.0)
    assert "train/grad_norm" not in latest
    assert frozen.trainer.progress.updates == 12

    plain, delegating = build(), build([LearnersOwnStep()])
    plain.trainer.train()
    delegating.trainer.train()
    assert torch.equal(weights(plain.trainer.model), weights(delegating.trainer.model))


def test_post_optim(build):
    class Moves:
        def __init__(self):
            self.calls = []

        @hookimpl
        def process_optim_batch(self, learner):
            self.before = weights(learner.model)

        @hookimpl
        def post_optim(self, minibatch, learner):
            moved = not torch.equal(weights(learner.model), self.before)
            self.calls.append((moved, len(minibatch["observation"]), learner.progress.updates))

    hook = Moves()
    build([hook]).trainer.train()
    assert hook.calls == [(True, 16, count) for count in range(1, 13)]


def test_post_optim_log(build):
    class Twice:
        def __init__(self):
            self.losses = []

        @hookimpl
        def post_optim_log(self, metrics, minibatch, learner):
            self.losses.append(metrics["loss_critic"].item())
            assert metrics["grad_norm"] > 0
            assert not metrics["loss_critic"].requires_grad
            return {"twice": 2 * metrics["loss_critic"], "size": len(minibatch["observation"])}

    hook = Twice()
    run = build([hook], metrics={"every": 1000})
    run.trainer.train()
    latest = run.trainer.metrics.latest
    mean = sum(hook.losses) / 12
    assert latest["train/twice"] == pytest.approx(2 * mean)
    assert latest["train/loss_critic"] == pytest.approx(mean), "the metrics of the step are logged too"
    assert (latest["train/size"], latest["train/twice/count"]) == (16.0, 12.0)


def test_pre_epoch_log(build):
    class Before:
        def __init__(self):
            self.calls = []

        @hookimpl
        def pre_epoch_log(self, batch, learner):
            self.calls.append((tuple(batch.batch_size), learner.progress.updates))
            return {"before": learner.progress.updates}

    hook = Before()
    run = build([hook], metrics={"every": 1000})
    run.trainer.train()
    assert hook.calls == [((1, 32), count) for count in range(0, 12, MINIBATCHES)], "before each epoch"
    assert run.trainer.metrics.latest["before"] == sum(range(0, 12, MINIBATCHES)) / (ITERATIONS * EPOCHS)


def test_post_epoch_log(build):
    class After:
        @hookimpl
        def pre_epoch(self, batch):
            return batch.clone().set("mark", torch.ones(1, 32, 1))

        @hookimpl
        def post_epoch_log(self, batch, learner):
            return {"after": learner.progress.updates, "marked": batch["mark"].mean()}

    run = build([After()], metrics={"every": 1000})
    run.trainer.train()
    latest = run.trainer.metrics.latest
    assert latest["after"] == sum(range(MINIBATCHES, 13, MINIBATCHES)) / (ITERATIONS * EPOCHS), "after each epoch"
    assert latest["marked"] == 1, "with the batch of the epoch"


def test_post_optim_complete_log(build):
    class Mean:
        def __init__(self):
            self.losses, self.calls = [], []

        @hookimpl
        def post_optim_log(self, metrics):
            self.losses.append(metrics["loss_critic"].item())

        @hookimpl
        def post_optim_complete_log(self, updates, losses, trainer):
            self.calls.append((trainer, updates, losses["loss_critic"].item()))
            return {"complete": updates}

    hook = Mean()
    run = build([hook], metrics={"every": 1000})
    run.trainer.train()
    for number, (trainer, updates, mean) in enumerate(hook.calls):
        steps = slice(4 * number, 4 * number + 4)
        assert (trainer, updates) == (run.trainer, 4 * number + 4)
        assert mean == pytest.approx(sum(hook.losses[steps]) / 4), "over both epochs of the iteration, and no other"
    assert len(hook.calls) == ITERATIONS
    assert run.trainer.metrics.latest["complete"] == 8.0


def test_post_epoch(build):
    class Note:
        def __init__(self):
            self.calls = []

        @hookimpl
        def post_epoch(self, batch, learner):
            self.calls.append((tuple(batch.batch_size), "advantage" in batch, learner.progress.updates))

    note = Note()
    build([note]).trainer.train()
    assert note.calls == [((1, 32), True, count) for count in range(2, 13, 2)]


def test_post_steps(build):
    class Note:
        def __init__(self):
            self.calls = []

        @hookimpl
        def batch_process(self, batch):
            self.batch = batch.clone()
            return self.batch

        @hookimpl
        def post_steps(self, batch, trainer):
            progress = trainer.progress
            self.calls.append((batch is self.batch, progress.iterations, progress.updates))

    note = Note()
    build([note]).trainer.train()
    assert note.calls == [(True, 1, 4), (True, 2, 8), (True, 3, 12)]


def test_post_steps_log(build):
    class Log:
        @hookimpl
        def post_steps_log(self, batch, trainer):
            evaluated = trainer.last_evaluation.frames == trainer.progress.frames
            return {"iteration": trainer.progress.iterations, "evaluated": evaluated, "size": batch.numel()}

    run = build([Log()], evaluator={"use": "episodes", "episodes": 1, "every": 32})
    rows = []
    for _ in run.trainer:
        rows.append({key: run.trainer.metrics.latest[key] for key in ("iteration", "evaluated", "size")})
    # in the row of its own iteration, after the evaluation that was due
    assert rows == [{"iteration": n, "evaluated": 1.0, "size": 32.0} for n in (1.0, 2.0, 3.0)]


def test_setup(build):
    class Note:
        def __init__(self):
            self.calls = []

        @hookimpl
        def setup(self, trainer):
            complete = all((trainer.model, trainer.collector, trainer.buffer, trainer.learner, trainer.evaluator))
            self.calls.append((complete, trainer.progress.frames, trainer.last_evaluation))

    note = Note()
    run = build([note], evaluator={"use": "episodes", "episodes": 1})
    assert note.calls == [], "not while the run is built"
    run.trainer.train()
    assert note.calls == [(True, 0, None)], "once, before the evaluation at frame 0"


def test_episode_end(build):
    class Note:
        def __init__(self):
            self.episodes = []

        @hookimpl
        def episode_end(self, episode, trainer):
            self.episodes.append(episode)
            assert trainer.progress.episodes == len(self.episodes)

    note = Note()
    run = build([note], metrics={"every": 1000})
    run.trainer.train()
    assert len(note.episodes) == run.trainer.progress.episodes > 0
    for episode in note.episodes:
        assert episode.return_ == episode.length > 0, "CartPole pays 1 per step"
        assert episode.env_index == 0
    mean = sum(episode.return_ for episode in note.episodes) / len(note.episodes)
    assert run.trainer.metrics.latest["episode/return"] == pytest.approx(mean)


def test_evaluation(build):
    class Note:
        def __init__(self):
            self.results = []

        @hookimpl
        def evaluation(self, result, trainer):
            assert result is trainer.last_evaluation
            self.results.append(result)

    note = Note()
    build([note], evaluator={"use": "episodes", "episodes": 2, "every": 64}).trainer.train()
    # before the first frame, when due, and at the end
    assert [result.frames for result in note.results] == [0, 64, 96]
    assert all(isinstance(result, EvaluationResult) and len(result.returns) == 2 for result in note.results)


def test_checkpoint_saved(build):
    class Note:
        def __init__(self):
            self.calls = []

        @hookimpl
        def checkpoint_saved(self, path, trainer):
            committed = (path / "manifest.json").is_file() and not path.name.startswith(".")
            self.calls.append((committed, trainer.progress.frames, path == trainer.last_checkpoint))

    note = Note()
    build([note], write=True, checkpoint={"every": 64}).trainer.train()
    assert note.calls == [(True, 0, True), (True, 64, True), (True, 96, True)], "at the start, when due, at the end"


class Fails:
    @hookimpl
    def batch_process(self):
        raise ValueError("on purpose")


class Ending:
    def __init__(self):
        self.calls = []

    @hookimpl
    def on_exception(self, error, trainer):
        self.calls.append(("on_exception", error, trainer.progress.frames))

    @hookimpl
    def shutdown(self):
        self.calls.append("shutdown")


def test_on_exception(build):
    clean = Ending()
    build([clean]).trainer.train()
    assert clean.calls == ["shutdown"]

    ending = Ending()
    with pytest.raises(ValueError, match="on purpose") as raised:
        build([Fails(), ending]).trainer.train()
    assert ending.calls == [("on_exception", raised.value, 0), "shutdown"], "before shutdown; the error goes on"


def test_shutdown(build):
    class Named:
        def __init__(self, name, calls):
            self.name, self.calls = name, calls

        @hookimpl
        def setup(self):
            self.calls.append(f"setup {self.name}")

        @hookimpl
        def shutdown(self, trainer):
            self.calls.append((f"shutdown {self.name}", trainer.progress.frames))

    calls = []
    build([Named("a", calls), Named("b", calls)]).trainer.train()
    assert calls == ["setup a", "setup b", ("shutdown b", 96), ("shutdown a", 96)], "last in the config, first to end"

    calls = []
    with pytest.raises(ValueError, match="on purpose"):
        build([Named("a", calls), Fails(), Named("b", calls)]).trainer.train()
    assert calls[2:] == [("shutdown b", 0), ("shutdown a", 0)], "also after an error"


def test_shutdown_runs_when_setup_of_another_hook_fails(build):
    class FailingSetup:
        @hookimpl
        def setup(self):
            raise HookError("not ready")

    ending = Ending()
    with pytest.raises(HookError, match="not ready"):
        build([ending, FailingSetup()]).trainer.train()
    assert [call[0] if isinstance(call, tuple) else call for call in ending.calls] == ["on_exception", "shutdown"]
