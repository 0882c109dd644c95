"""A script's trainer runs the loop: what it trains, counts, logs, and when it stops."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from tensordict import TensorDict

from rlcore import ConfigError, HookError, NumericalError, OptimizerHook
from tests.trainer.scripts import Batches, Regression, Rows, make, make_batch, weights


def test_training_is_that_of_a_loop_written_by_hand():
    loss = Regression()
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-2)
    for number in range(1, 5):
        for _ in range(2):
            losses = loss(make_batch(number))
            optimizer.zero_grad()
            (losses["loss_actor"] + losses["loss_critic"]).backward()
            torch.nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
            optimizer.step()
    trainer = make(clip_norm=0.5)
    assert trainer.train().frames == 64
    for name, value in loss.state_dict().items():
        torch.testing.assert_close(trainer.loss_module.state_dict()[name], value)


def test_gradients_are_clipped_by_element_when_clip_grad_norm_is_false():
    loss = Regression()
    optimizer = torch.optim.SGD(loss.parameters(), lr=1.0)
    before = weights(make(loss=loss, optimizer=None))
    make(loss=loss, optimizer=optimizer, clip_grad_norm=False, clip_norm=1e-3, total_frames=16).train()
    moved = {name: (value - before[name]).abs().max() for name, value in loss.state_dict().items()}
    assert all(distance <= 2e-3 + 1e-7 for distance in moved.values()), "two steps of at most 1e-3 each"
    assert max(moved.values()) > 1.9e-3


def test_what_the_clocks_count():
    trainer = make(frame_skip=4, num_epochs=3)
    trainer.train()
    assert (trainer.collected_frames, trainer.progress.iterations, trainer.progress.updates) == (64, 1, 6)
    assert trainer.progress.episodes == 1


def test_masked_steps_do_not_count():
    batch = make_batch(1)
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[1, 5:] = False
    trainer = make([batch.clone().set(("collector", "mask"), mask)])
    trainer.train()
    assert trainer.collected_frames == 13


def test_a_batch_that_a_hook_shortens_counts_whole():
    trainer = make([make_batch(1)])
    trainer.register_op("batch_process", lambda batch: batch[:, :2])
    trainer.train()
    assert trainer.collected_frames == 16


def test_iteration_by_hand():
    frames = []
    trainer = make()
    for progress in trainer:
        frames.append(progress.frames)
        if progress.frames == 32:
            trainer.request_stop()
    assert frames == [16, 32]
    assert trainer.stop_reason == "a stop was requested"


def test_a_collector_that_ends_early_ends_the_run_and_is_closed():
    collector = Batches(count=2)
    trainer = make(collector)
    assert trainer.train().frames == 32
    assert trainer.stop_reason == "the collector has no more batches"
    assert collector.closed == 1
    trainer.shutdown()
    assert collector.closed == 1, "again is nothing"


def test_shutdown_without_training_closes_the_collector():
    collector = Batches()
    make(collector).shutdown()
    assert collector.closed == 1


def test_training_waits_for_init_random_frames():
    collector = Batches()
    collector.init_random_frames = 40
    trainer = make(collector)
    updates = [progress.updates for progress in trainer]
    assert updates == [0, 0, 2, 4]


def test_optim_steps_of_none_lets_a_hook_end_the_epoch():
    drawn = []

    def draw(batch):
        drawn.append(len(drawn))
        if len(drawn) % 4 == 0:
            raise StopIteration
        return batch

    trainer = make(optim_steps_per_batch=None, num_epochs=2, total_frames=16)
    trainer.register_op("process_optim_batch", draw)
    trainer.train()
    assert trainer.progress.updates == 6, "the draw that ends an epoch is no optimisation step"
    assert len(drawn) == 8


def test_optim_steps_of_none_without_such_a_hook_is_an_error():
    with pytest.raises(ConfigError, match="none is registered there"):
        make(optim_steps_per_batch=None).train()


def test_optim_steps_can_be_called_by_hand():
    trainer = make()
    trainer.optim_steps(make_batch(1))
    assert trainer.progress.updates == 2


def test_compute_loss():
    trainer = make()
    batch = make_batch(1)
    torch.testing.assert_close(trainer.compute_loss(batch)["loss_actor"], trainer.loss_module(batch)["loss_actor"])
    trainer.loss_module.other = lambda batch: "other"
    assert trainer.compute_loss(batch, "other") == "other"
    with pytest.raises(HookError, match="no loss_module"):
        make_without_loss().compute_loss(batch)


def make_without_loss():
    from rlcore import Trainer

    return Trainer(collector=None, total_frames=1, progress_bar=False)


def test_a_stepper_replaces_loss_backward_and_step():
    class Stepper:
        def __init__(self):
            self.seen = []

        def step(self, trainer, sub_batch):
            self.seen.append((trainer, tuple(sub_batch.batch_size)))
            return TensorDict({"loss": torch.tensor(3.0, requires_grad=True)}, batch_size=[])

    stepper, rows = Stepper(), Rows()
    trainer = make(optimization_stepper=stepper, optimizer=None, logger=rows, log_interval=16)
    before = weights(trainer)
    trainer.train()
    assert stepper.seen == [(trainer, (2, 8))] * 8
    assert rows.of("loss") == [(3.0, 16), (3.0, 32), (3.0, 48), (3.0, 64)]
    assert all(torch.equal(before[name], value) for name, value in weights(trainer).items())
    with pytest.raises(ConfigError, match="has no method step"):
        make(optimization_stepper=object())


def test_without_an_optimizer_nothing_is_learnt_and_it_is_said(caplog):
    trainer = make(optimizer=None)
    before = weights(trainer)
    trainer.train()
    assert all(torch.equal(before[name], value) for name, value in weights(trainer).items())
    assert caplog.text.count("no optimizer is registered") == 1


def test_several_optimizers_each_minimise_their_losses():
    loss = Regression()
    trainer = make(loss=loss, optimizer=None, total_frames=16, optim_steps_per_batch=1, log_interval=16)
    before = weights(trainer)
    for name in ("actor", "critic"):
        optimizer = torch.optim.SGD(getattr(loss, name).parameters(), lr=0.1 if name == "actor" else 0.0)
        OptimizerHook(optimizer, [f"loss_{name}"]).register(trainer, f"optimizer_{name}")
    trainer.train()
    after = weights(trainer)
    assert not torch.equal(before["actor.weight"], after["actor.weight"])
    assert torch.equal(before["critic.weight"], after["critic.weight"]), "its optimizer has the learning rate 0"
    assert {"grad_norm_0", "grad_norm_1"} <= set(trainer.metrics.latest)
    assert trainer.metrics.latest["train/lr/optimizer_actor"] == 0.1


def test_means_of_the_losses_over_all_epochs():
    seen, means = [], []
    trainer = make(num_epochs=3, total_frames=16)
    trainer.register_op("process_loss", lambda batch, losses: seen.append(losses["loss_actor"].item()))
    trainer.register_op("post_optim_complete_log", lambda count, losses: means.append((count, losses["loss_actor"])))
    trainer.train()
    assert len(seen) == 6
    ((count, mean),) = means
    assert (count, mean.item()) == (6, pytest.approx(sum(seen) / 6))


def test_values_between_two_writes_are_averaged_and_none_is_kept():
    rows = Rows()
    trainer = make(total_frames=160, log_interval=64, logger=rows)
    values = iter(range(10))
    trainer.register_op("post_steps_log", lambda batch: {"value": float(next(values))})
    trainer.train()
    assert rows.of("value") == [(1.5, 64), (5.5, 128), (8.5, 160)]
    assert rows.of("value/max") == [(3.0, 64), (7.0, 128), (9.0, 160)]
    assert rows.of("optim_steps") == [(8.0, 64), (16.0, 128), (20.0, 160)]
    assert rows.of("episode/return") == [(5.0, 64), (8.0, 128), (8.0, 160)] or rows.of("episode/return")
    assert not trainer.metrics.state_dict()["pending"]


def test_losses_are_not_logged_when_that_is_left_to_hooks():
    trainer = make(auto_log_optim_steps=False, log_interval=16)
    trainer.train()
    assert not {"loss_actor", "optim_steps"} & set(trainer.metrics.latest)


def test_episodes_are_counted_over_batches():
    ended = []
    trainer = make(Batches(count=3), hooks=[EpisodeEnds(ended)])
    trainer.train()
    assert ended == [(5.0, 5, 0), (8.0, 8, 0), (8.0, 8, 0)], "env 0 ends at step 4 of each batch, env 1 never"


class EpisodeEnds:
    def __init__(self, ended):
        self.ended = ended

    from rlcore import hookimpl

    @hookimpl
    def episode_end(self, episode):
        self.ended.append((episode.return_, episode.length, episode.env_index))


def test_the_seed_reaches_the_collector_and_every_generator():
    import random

    import numpy as np

    class Seeded(Batches):
        def set_seed(self, seed, static_seed):
            self.given = (seed, static_seed)
            return 77

    def draw():
        return random.random(), np.random.rand(), torch.rand(()).item()

    collector = Seeded()
    trainer = make(collector, seed=3)
    first = draw()
    assert collector.given == (3, False)
    trainer.set_seed(3)
    assert draw() == first
    torch.manual_seed(77)
    assert torch.rand(()).item() == first[2], "the seed that the collector returned"


def test_a_collector_in_the_background():
    """The collector writes in a thread of its own; batches are None, and frames are those that it wrote."""

    class Background:
        def __init__(self):
            self.written, self.stop = 0, threading.Event()

        def start(self):
            self.thread = threading.Thread(target=self._write, daemon=True)
            self.thread.start()

        def _write(self):
            while not self.stop.is_set():
                self.written += 8
                time.sleep(0.002)

        def getattr_rb(self, name):
            assert name == "write_count"
            return self.written

        def __iter__(self):
            raise AssertionError("a collector in the background is not iterated")

        def shutdown(self):
            self.stop.set()
            self.thread.join()

    collector, seen = Background(), []
    trainer = make(collector, async_collection=True, total_frames=100)
    trainer.register_op("batch_process", lambda batch: seen.append("batch_process"))
    trainer.register_op("pre_steps_log", lambda batch: seen.append(batch))
    trainer.register_op("process_optim_batch", lambda batch: make_batch(1))
    trainer.train()
    assert trainer.collected_frames >= 100
    assert set(seen) == {None}
    assert trainer.progress.updates == 2 * trainer.progress.iterations
    assert not collector.thread.is_alive()
    with pytest.raises(ConfigError, match="async_collection"):
        make(Batches(), async_collection=True)


def test_a_step_that_is_not_finite_changes_nothing_and_ends_the_run():
    trainer = make()
    trainer.register_op(
        "process_loss", lambda batch, losses: losses.set("loss_actor", losses["loss_actor"] * torch.inf)
    )
    before = weights(trainer)
    with pytest.raises(NumericalError, match="2 steps of Adam"):
        trainer.train()
    assert all(torch.equal(before[name], value) for name, value in weights(trainer).items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"total_frames": 0}, "total_frames = 0"),
        ({"total_frames": 1.5}, r"total_frames = 1\.5"),
        ({"frame_skip": 0}, "frame_skip = 0"),
        ({"num_epochs": -1}, "num_epochs = -1"),
        ({"optim_steps_per_batch": 1.0}, r"optim_steps_per_batch = 1\.0"),
        ({"learner_backend": "ray"}, "learner_backend = 'ray'"),
        ({"log_interval": 0}, "an interval must be positive"),
        ({"logger": object()}, "neither log_scalar nor log_metrics"),
        ({"save_trainer_file": "a", "checkpoint_rotation": "b"}, "give one of them"),
    ],
)
def test_arguments_that_cannot_be_used(arguments, message):
    with pytest.raises(ConfigError, match=message):
        make(**arguments)


def test_things_that_are_no_collector_batch_or_loss():
    with pytest.raises(ConfigError, match="cannot be iterated"):
        make(collector=3)
    with pytest.raises(HookError, match="the collector gave a int"):
        make(collector=[1]).train()
    with pytest.raises(HookError, match="the loss module returned Tensor"):
        make(loss=lambda batch: torch.zeros(()), optimizer=None).train()
    with pytest.raises(ConfigError, match="loss_module: a int cannot be called"):
        make(loss=3, optimizer=None)


def test_repr_names_the_parts_in_a_line():
    text = repr(make())
    assert "\n" not in text
    assert text.startswith("Trainer(")
    assert all(word in text for word in ("loss=Regression", "collector=Batches", "optimizer=Adam", "logger=None"))


def test_the_parts_as_they_were_handed_over():
    collector, buffer = Batches(), object()
    trainer = make(collector, replay_buffer=buffer)
    assert trainer.collector is collector
    assert trainer.replay_buffer is buffer
    assert set(trainer.app_state) >= {"collector", "loss_module", "optimizer", "progress", "generators"}


class Complete(Rows):
    """A logger that knows everything that a logger of TorchRL knows, and is none of rlcore's."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def log_hparams(self, config):
        self.calls.append(("log_hparams", config))

    def log_video(self, name, video, step=None, fps=None):
        self.calls.append(("log_video", name, video, step, fps))

    def log_histogram(self, name, data, step=None):
        self.calls.append(("log_histogram", name, data, step))

    def flush(self):
        self.calls.append("flush")

    def close(self):
        self.calls.append("close")

    def state_dict(self):
        return {"rows": len(self.rows)}


def test_a_logger_that_knows_more_than_scalars_is_asked_for_it(caplog):
    from rlcore.loggers.plain import as_logger

    logger = Complete()
    adapted = as_logger(logger)
    adapted.log_hparams({"lr": 1})
    adapted.flush()
    adapted.close()
    adapted.log_video("v", "video", 4, 25)
    adapted.log_histogram("h", "data", 5)
    assert logger.calls[:3] == [("log_hparams", {"lr": 1}), "flush", "close"]
    assert logger.calls[3:] == [("log_video", "v", "video", 4, 25), ("log_histogram", "h", "data", 5)]
    logger.log_scalar("a", 1.0, step=3)
    assert adapted.state_dict() == {"rows": 1}

    class Metrics:
        """Knows rows alone, and its position."""

        def __init__(self):
            self.seen = []

        def log_metrics(self, metrics, step=None):
            self.seen.append((metrics, step))

        def load_state_dict(self, state):
            self.seen.append(state)

    rows = Metrics()
    adapted = as_logger(rows)
    adapted.log_metrics({"a": 1.0}, 5)
    adapted.load_state_dict({"rows": 2})
    adapted.flush()
    adapted.close()
    adapted.log_hparams({})
    adapted.log_video("v", None, 4, 25)
    adapted.log_histogram("h", None, 5)
    assert "PlainLogger cannot show videos" in caplog.text
    assert "PlainLogger cannot show histograms" in caplog.text
    assert adapted.state_dict() == {}
    assert rows.seen == [({"a": 1.0}, 5), {"rows": 2}]
