"""Each method of TorchRL's named trainers, overridden in turn: it is refused by name, or called."""

from __future__ import annotations

import pytest
import torch
from tensordict import TensorDict

import rlcore.algorithms
from rlcore.algorithms import ReinforceTrainer
from rlcore.errors import NotSupportedError
from rlcore.types import originals

TABLE = originals("rlcore_plugin_torchrl")["names"]
NAMES = [(kind, name) for kind, names in TABLE.items() if kind in rlcore.algorithms.__all__ for name in names]


class Batches:
    def __iter__(self):
        for _ in range(2):
            following = {"reward": torch.ones(4, 1), "done": torch.zeros(4, 1, dtype=torch.bool)}
            yield TensorDict({"observation": torch.ones(4, 2), "action": torch.ones(4, 1), "next": following}, [4])

    def update_policy_weights_(self, weights):
        assert "weight" in weights.keys()  # noqa: SIM118 - a TensorDict is iterated over its rows


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.actor_network = torch.nn.Linear(2, 1)

    def forward(self, batch):
        return TensorDict({"loss_actor": self.actor_network(batch["observation"]).square().mean()}, [])


def reinforce(kind):
    loss = Loss()
    optimizer = torch.optim.SGD(loss.parameters(), lr=0.1)
    return kind(
        collector=Batches(), total_frames=8, loss_module=loss, optimizer=optimizer, optim_steps_per_batch=1,
        progress_bar=False, add_gae=False,
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_a_method_of_a_named_trainer_is_refused(kind, name):
    own = type("Own", (getattr(rlcore.algorithms, kind),), {name: lambda self: None})
    with pytest.raises(NotSupportedError, match=f"Own.{name} would never be called: TorchRL calls it, rlcore does not"):
        own(collector=[], total_frames=1)


def test_a_method_of_the_trainer_is_refused_in_a_named_one_too():
    own = type("Own", (ReinforceTrainer,), {"_post_steps_hook": lambda self: None})
    with pytest.raises(NotSupportedError, match=r"register_op\('post_steps', operation\) has it called"):
        reinforce(own)


@pytest.mark.parametrize("name", ["compute_loss", "optim_steps", "save_trainer", "_process_batch_hook", "_log"])
def test_a_method_that_a_named_trainer_inherits_is_called(name):
    calls = []

    def method(self, *arguments, **keywords):
        calls.append(name)
        return getattr(super(own, self), name)(*arguments, **keywords)

    own = type("Own", (ReinforceTrainer,), {name: method})
    reinforce(own).train()
    assert calls


def test_what_a_refusal_names_is_called():
    calls = []

    class Own(ReinforceTrainer):
        def register_logging(self):
            calls.append("register_logging")
            super().register_logging()

    reinforce(Own).train()
    assert calls == ["register_logging"]
