"""UTDRHook logs updates per collected step."""

import logging
from types import SimpleNamespace

import pytest
import torch
from tensordict import TensorDict

import rlcore
from rlcore import UTDRHook


class Background:
    """A collector whose buffer has as many more steps at each look."""

    def __init__(self, batch_size=8):
        self.write_count, self.batch_size = 0, batch_size

    def __iter__(self):
        return iter(())

    def start(self):
        pass

    def getattr_rb(self, name):
        if name == "write_count":
            self.write_count += 5
        return getattr(self, name)


def trainer_of(collector, **arguments):
    return rlcore.Trainer(
        collector=collector, total_frames=60, loss_module=torch.nn.Identity(), progress_bar=False, **arguments
    )


def test_nothing_before_the_first_write():
    trainer = trainer_of([], replay_buffer=SimpleNamespace(write_count=0, batch_size=4, minibatches=None, num_epochs=1))
    assert UTDRHook(trainer)() == {}


def test_the_ratio_of_a_replay_buffer():
    trainer = trainer_of([], replay_buffer=SimpleNamespace(write_count=lambda: 100, batch_size=4, minibatches=None))
    trainer.progress.updates = 50
    found = {key: value.value for key, value in UTDRHook(trainer)().items() if key != "log_pbar"}
    assert found == {"utd_ratio": 2.0, "write_count": 100, "update_count": 50}


def test_a_buffer_without_a_batch_size_is_said_once(caplog):
    trainer = trainer_of([], replay_buffer=SimpleNamespace(write_count=10, minibatches=None))
    trainer.progress.updates = 5
    hook = UTDRHook(trainer)
    with caplog.at_level(logging.WARNING):
        assert hook()["utd_ratio"].value == hook()["utd_ratio"].value == 0.5
    (record,) = caplog.records
    assert record.message == "UTDRHook: the replay buffer has no batch_size; 1 is assumed"


def test_in_a_run_that_collects_in_the_background(rows):
    class Loss(torch.nn.Module):
        def forward(self, batch):
            return {"loss": torch.zeros(())}

    trainer = rlcore.Trainer(
        collector=Background(),
        total_frames=60,
        async_collection=True,
        loss_module=Loss(),
        optim_steps_per_batch=2,
        progress_bar=False,
        logger=rows,
        log_interval=1,
    )
    trainer.register_op("process_optim_batch", lambda batch: TensorDict({}, batch_size=[8]))
    UTDRHook(trainer).register(trainer)
    trainer.train()
    row = rows.rows[-1][1]
    assert row["utd_ratio"] == pytest.approx(8 * row["update_count"] / row["write_count"])
    assert row["update_count"] > 0
