"""Operations are called at the same moments, with the same things, as by TorchRL's trainer."""

from __future__ import annotations

import pytest
import torch

from rlcore.hooks.operations import DESTINATIONS

RETURNS = {
    "process_loss": lambda sub_batch, losses: losses,
    "optimizer": lambda losses, *rest: losses,
    "pre_epoch": lambda batch: batch,  # TorchRL takes None for the batch
}


def described(value):
    """What an argument is, in a form that can be compared."""
    if not hasattr(value, "items"):
        return value
    found = {}
    for key, item in sorted(value.items(), key=lambda pair: str(pair[0])):
        if isinstance(item, torch.Tensor):
            found[str(key)] = (list(item.shape), round(float(item.double().mean()), 5))
    return found


def recorded(trainer, leave_out=()):
    """Train with a recorder at every destination; return the calls in order."""
    calls = []

    def recorder(destination):
        def record(*arguments):
            shown = "…" if destination in leave_out else [described(argument) for argument in arguments]
            calls.append((destination, shown))
            answer = RETURNS.get(destination)
            return None if answer is None else answer(*arguments)

        return record

    for destination in DESTINATIONS:
        trainer.register_op(destination, recorder(destination))
    trainer.train()
    return calls


def test_the_destinations_are_those_of_torchrl(make_trainer):
    trainer = make_trainer("torchrl", [])
    for destination in DESTINATIONS:
        trainer.register_op(destination, lambda *arguments: None)
    with pytest.raises(RuntimeError) as raised:
        trainer.register_op("nowhere", lambda *arguments: None)
    listed = str(raised.value).partition("from:(")[2].strip(")").split(", ")
    assert sorted(listed) == sorted(DESTINATIONS)


@pytest.mark.parametrize("size", [(8,), (2, 4)])
@pytest.mark.parametrize(("epochs", "steps"), [(1, 1), (2, 3)])
def test_two_batches_make_the_same_calls(batch, make_trainer, size, epochs, steps):
    found = []
    for library in ("torchrl", "rlcore"):
        trainer = make_trainer(
            library, [batch(*size), batch(*size, seed=1)], num_epochs=epochs, optim_steps_per_batch=steps, clip_norm=0.5
        )
        found.append(recorded(trainer, leave_out=("post_optim_complete_log",) if epochs > 1 else ()))  # see below
    assert found[0] == found[1]
    assert len(found[1]) == 2 + 2 * (6 + 4 * epochs + 6 * epochs * steps)


def test_an_epoch_can_be_ended_while_its_next_sub_batch_is_drawn(batch, make_trainer):
    found = []
    for library in ("torchrl", "rlcore"):
        calls = []
        trainer = make_trainer(library, [batch(8)], num_epochs=2, optim_steps_per_batch=None)
        parts = iter([0, 4, None, 0, 4, None])

        def draw(whole, parts=parts):
            start = next(parts)
            if start is None:
                raise StopIteration
            return whole[start : start + 4]

        trainer.register_op("process_optim_batch", draw)
        trainer.register_op("post_loss", lambda sub_batch, calls=calls: calls.append(sub_batch["number"].tolist()))
        trainer.register_op("post_epoch", lambda calls=calls: calls.append("end"))
        trainer.train()
        found.append(calls)
    assert found[0] == found[1] == [[0, 1, 2, 3], [4, 5, 6, 7], "end"] * 2


def test_keyword_arguments_are_passed_at_every_call(batch, make_trainer, library):
    seen = []
    trainer = make_trainer(library, [batch(4)] * 2)
    trainer.register_op("pre_steps_log", lambda batch, word: seen.append(word), word="here")
    trainer.train()
    assert seen == ["here", "here"]


def test_the_default_optimizer_takes_the_same_steps(batch, make_trainer):
    weights = []
    for library in ("torchrl", "rlcore"):
        trainer = make_trainer(library, [])
        loss = trainer.loss_module
        trainer = make_trainer(
            library,
            [batch(8, seed=seed) for seed in range(5)],
            loss_module=loss,
            optimizer=torch.optim.Adam(loss.parameters(), lr=0.1),
            optim_steps_per_batch=3,
            clip_norm=0.3,
        )
        trainer.train()
        weights.append(loss.layer.weight.detach())
    torch.testing.assert_close(*weights, rtol=1e-5, atol=1e-6)


# what differs on purpose


def averages(make_trainer, library, batch):
    seen = []
    trainer = make_trainer(library, [batch(8)], num_epochs=2, optim_steps_per_batch=2)
    losses = iter([1.0, 2.0, 3.0, 6.0])

    def set_loss(sub_batch, found):
        return found.clone().set("loss_value", torch.tensor(next(losses)))

    trainer.register_op("process_loss", set_loss)
    trainer.register_op("post_optim_complete_log", lambda count, found: seen.append(float(found["loss_value"])))
    trainer.train()
    return seen


def test_difference_the_mean_of_the_losses_is_over_all_epochs(batch, make_trainer):
    """TorchRL's running mean restarts its divisor with each epoch, so that the first epoch is forgotten."""
    assert averages(make_trainer, "rlcore", batch) == [pytest.approx(3.0)]
    assert averages(make_trainer, "torchrl", batch) == [pytest.approx(4.5)]


def test_difference_a_draw_that_ends_the_epoch_is_no_optimisation_step(batch, make_trainer):
    """TorchRL counts it, so `optim_steps` runs ahead of the steps taken."""
    counts = {}
    for library in ("torchrl", "rlcore"):
        seen = counts[library] = []
        trainer = make_trainer(library, [batch(8)], optim_steps_per_batch=None)
        draws = iter([True, True, False])

        def draw(whole, draws=draws):
            if not next(draws):
                raise StopIteration
            return whole

        trainer.register_op("process_optim_batch", draw)
        trainer.register_op("post_optim_complete_log", lambda count, losses, seen=seen: seen.append(count))
        trainer.train()
    assert counts == {"torchrl": [3], "rlcore": [2]}


def test_difference_none_from_pre_epoch_leaves_the_batch(batch, make_trainer):
    """TorchRL goes on with None, and the next operation fails."""
    seen = []
    trainer = make_trainer("rlcore", [batch(8)])
    trainer.register_op("pre_epoch", lambda batch: None)
    trainer.register_op("process_optim_batch", lambda batch: seen.append(batch["number"].numel()))
    trainer.train()
    assert seen == [8]


def test_difference_a_wrong_return_is_an_error(batch, make_trainer):
    """TorchRL passes it over."""
    from rlcore import HookError

    for library, ends in (("torchrl", True), ("rlcore", False)):
        trainer = make_trainer(library, [batch(8)])
        trainer.register_op("batch_process", lambda batch: "a batch")
        if ends:
            trainer.train()
        else:
            with pytest.raises(HookError, match="returned str; expected a TensorDict"):
                trainer.train()


def test_difference_frames_are_counted_before_the_batch_is_changed(batch, make_trainer):
    """TorchRL counts what `batch_process` leaves over, so padding counts as frames and dropped steps do not."""
    frames = {}
    for library in ("torchrl", "rlcore"):
        trainer = make_trainer(library, [batch(8)])
        trainer.register_op("batch_process", lambda batch: batch[:2])
        trainer.train()
        frames[library] = trainer.collected_frames
    assert frames == {"torchrl": 2, "rlcore": 8}


def test_difference_values_between_two_writes_are_averaged(batch, make_trainer, make_rows):
    """TorchRL writes the value of the moment and drops those between."""
    rows = {library: make_rows() for library in ("torchrl", "rlcore")}
    for library, logger in rows.items():
        trainer = make_trainer(
            library,
            [batch(4)] * 4,
            logger=logger,
            log_interval=7 if library == "torchrl" else 8,
            total_frames=16,
            auto_log_optim_steps=False,
        )
        values = iter([1.0, 2.0, 3.0, 4.0])
        trainer.register_op("pre_steps_log", lambda batch, values=values: {"x": next(values)})
        trainer.train()
    assert [row for row in rows["torchrl"].rows if row[1] == "x"] == [(8, "x", 2.0), (16, "x", 4.0)]
    assert [row for row in rows["rlcore"].rows if row[1] == "x"] == [(8, "x", 1.5), (16, "x", 3.5)]


def test_training_a_run_that_is_done_does_nothing(library, make_trainer):
    from torchrl.collectors import Collector
    from torchrl.envs import GymEnv

    collector = Collector(GymEnv("Pendulum-v1"), None, frames_per_batch=4, total_frames=8)
    trainer = make_trainer(library, [], collector=collector, total_frames=8)
    trainer.train()
    trainer.register_op("pre_steps_log", lambda batch: pytest.fail("a batch was trained on"))
    trainer.train()
    assert trainer.collected_frames == 8
