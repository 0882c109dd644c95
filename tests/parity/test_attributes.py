"""What is set on a trainer after it was built has the effect that it has on TorchRL's."""

from __future__ import annotations

import pytest
import torch

from tests.parity.conftest import Collector, Loss, Rows, make_batch, trainer_of


class CountingSGD(torch.optim.SGD):
    """Counts its steps."""

    steps = 0

    def step(self, closure=None):
        self.steps += 1
        return super().step(closure)


class Stepper:
    """A stepper of either library, without state, that counts."""

    def __init__(self):
        self.calls = 0

    def register(self, trainer, name="optimization_stepper"):
        pass

    def step(self, trainer, sub_batch):
        self.calls += 1
        return trainer.compute_loss(sub_batch).detach()


def built(library, batches=None, **arguments):
    loss = Loss()
    optimizer = CountingSGD(loss.parameters(), lr=0.1)
    batches = [make_batch(2, 4, seed=n) for n in range(4)] if batches is None else batches
    return trainer_of(library, batches, loss_module=loss, optimizer=optimizer, **arguments), optimizer


def weights(loss):
    return torch.cat([parameter.detach().reshape(-1) for parameter in loss.parameters()])


def test_every_public_attribute_of_theirs_is_there():
    theirs, ours = (built(name)[0] for name in ("torchrl", "rlcore"))
    names = {name for name in [*vars(theirs), *dir(theirs)] if not name.startswith("_")}
    assert not [name for name in names if not hasattr(ours, name)]
    alike = names & {
        *("frame_skip", "batch_size", "learner_backend", "learner_poll_interval", "async_collection", "seed"),
        *("optim_steps_per_batch", "total_frames", "num_epochs", "clip_grad_norm", "clip_norm", "progress_bar"),
        *("save_trainer_interval", "save_trainer_file", "checkpoint", "checkpoint_rotation", "checkpoint_metadata"),
        *("auto_log_optim_steps", "logger", "replay_buffer", "target_net_updater", "optimization_stepper"),
        *("collected_frames", "learner_backend_options"),
    }
    assert len(alike) == 24
    for name in alike:
        assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.parametrize(
    ("name", "value", "frames", "steps"),
    [
        ("total_frames", 16, 16, 2),
        ("frame_skip", 3, 96, 4),
        ("optim_steps_per_batch", 3, 32, 12),
        ("num_epochs", 2, 32, 8),
        ("collected_frames", 100, 132, 4),
        ("progress_bar", True, 32, 4),
    ],
)
def test_counts(library, name, value, frames, steps):
    trainer, optimizer = built(library)
    setattr(trainer, name, value)
    assert getattr(trainer, name) == value
    trainer.train()
    assert (trainer.collected_frames, optimizer.steps) == (frames, steps)


def test_the_norm_that_is_set_clips_as_there():
    weights_of = []
    for library in ("torchrl", "rlcore"):
        trainer, _ = built(library)
        trainer.clip_norm = 0.01
        trainer.train()
        weights_of.append(weights(trainer.loss_module))
    untouched, _ = built("rlcore")
    untouched.train()
    torch.testing.assert_close(*weights_of)
    assert not torch.equal(weights_of[1], weights(untouched.loss_module)), "the setting changed nothing"


def test_the_logger_and_what_it_is_told(library):
    trainer, _ = built(library, logger=(rows := Rows()), auto_log_optim_steps=False)
    trainer.register_op("post_steps_log", lambda batch: {"mine": 1.0})
    trainer.train()
    names = {name for _, name, _ in rows.rows}
    assert "mine" in names
    assert "optim_steps" not in names


def test_where_and_when_it_saves(library, tmp_path):
    trainer, _ = built(library, save_trainer_file=tmp_path / "saved", save_trainer_interval=15)
    saved = []
    trainer.register_op("post_steps", lambda: saved.append((tmp_path / "saved").exists()))
    trainer.train()
    assert saved[-1], "a checkpoint came while it trained"
    again, _ = built(library)
    again.load_from_file(tmp_path / "saved")
    assert again.collected_frames == trainer.collected_frames
    assert torch.equal(weights(again.loss_module), weights(trainer.loss_module))


def test_a_stepper_takes_the_place_of_loss_and_step(library):
    trainer, optimizer = built(library, optimization_stepper=(stepper := Stepper()))
    trainer.train()
    assert (stepper.calls, optimizer.steps) == (4, 0)


def test_the_seed_is_that_of_the_next_seeding(library):
    trainer, _ = built(library)
    trainer.seed = 7
    trainer.set_seed()
    assert trainer.collector.seed == 7
    assert torch.initial_seed() == 7


def test_a_subclass_has_attributes_of_its_own(library):
    base = type(built(library)[0])

    class Mine(base):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            self.actor_network = "mine"

    trainer = Mine(
        collector=Collector([]), total_frames=8, frame_skip=1, optim_steps_per_batch=1, loss_module=Loss(),
        progress_bar=False,
    )  # fmt: skip
    trainer.another = 1
    assert (trainer.actor_network, trainer.another) == ("mine", 1)


def test_no_total_is_a_run_that_ends_with_its_data_or_a_stop():
    theirs, ours = (built(name, total_frames=None)[0] for name in ("torchrl", "rlcore"))
    assert ours.total_frames is theirs.total_frames is None
    with pytest.raises(TypeError):
        theirs.train()  # accepted, and then compared with numbers
    ours.train()
    assert ours.collected_frames == 32
