"""Several policies in a script: losses and optimizers by name, each over its own part of the batch."""

import pytest
import torch
from tensordict import TensorDict

from rlcore import Trainer
from rlcore.errors import ArgumentTypeError, ConfigError


class Fit(torch.nn.Module):
    """A weight that is to be the mean of its rows."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, batch):
        return {"loss_fit": (batch["x"] - self.weight).square().mean(), "rows": torch.tensor(float(len(batch["x"])))}


class WithTarget(Fit):
    """The same, and counts how often its target is moved."""

    def __init__(self):
        super().__init__()
        self.moved = 0
        self.target_updater = self

    def step(self):
        self.moved += 1


def batches(count=4):
    generator = torch.Generator().manual_seed(0)

    def part(size, mean):
        return TensorDict({"x": mean + torch.randn((2, size), generator=generator)}, [2, size])

    return [TensorDict({"hunters": part(3, 1.0), "prey": part(5, -2.0)}, [2]) for _ in range(count)]


def trainer_of(losses, optimizers, given=None, **arguments):
    arguments = {"total_frames": None, "progress_bar": False, "optim_steps_per_batch": 1, **arguments}
    return Trainer(collector=given or batches(), loss_module=losses, optimizer=optimizers, **arguments)


def both(kind=torch.optim.Adam, **keys):
    losses = {"hunters": Fit(), "prey": Fit()}
    return losses, {name: kind(loss.parameters(), **keys) for name, loss in losses.items()}


def test_each_policy_learns_what_it_learns_alone_from_its_part():
    losses, optimizers = both(lr=0.1)
    trainer = trainer_of(losses, optimizers, clip_norm=0.5)
    trainer.train()
    for name, loss in losses.items():
        alone = Fit()
        optimizer = torch.optim.Adam(alone.parameters(), lr=0.1)
        trainer_of(alone, optimizer, [batch[name] for batch in batches()], clip_norm=0.5).train()
        assert loss.weight.item() == alone.weight.item() != 0
    assert trainer.loss_module["prey"] is losses["prey"]
    for figure in ("hunters/loss_fit", "prey/loss_fit", "hunters/grad_norm", "prey/grad_norm"):
        assert trainer.metrics.newest(figure) > 0
    assert trainer.metrics.newest("prey/rows") == 2


def test_a_policy_without_rows_learns_nothing_and_the_other_does():
    given = batches(1)
    given[0]["prey"] = TensorDict({"x": torch.zeros(2, 0)}, [2, 0])
    losses, optimizers = both(torch.optim.SGD, lr=0.1)
    trainer_of(losses, optimizers, given).train()
    assert losses["hunters"].weight.item() != 0 == losses["prey"].weight.item()


def test_a_resume_goes_on_to_the_bit(tmp_path):
    def run(folder, given):
        losses, optimizers = both(lr=0.1)
        trainer = trainer_of(losses, optimizers, given, save_trainer_file=folder, save_trainer_interval=1)
        return trainer, losses

    whole, expected = run(tmp_path / "whole", batches(4))
    whole.train()
    first, _ = run(tmp_path / "parts", batches(4)[:2])
    first.train()
    second, found = run(tmp_path / "parts", batches(4)[2:])
    second.load_from_file(tmp_path / "parts")
    second.train()
    assert {name: loss.weight.item() for name, loss in found.items()} == {
        name: loss.weight.item() for name, loss in expected.items()
    }


def test_targets_of_each_policy_are_moved():
    losses = {"hunters": WithTarget(), "prey": Fit()}
    optimizers = {name: torch.optim.SGD(loss.parameters(), lr=0.1) for name, loss in losses.items()}
    trainer_of(losses, optimizers).train()
    assert losses["hunters"].moved == 4


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda losses, own: (losses, own["prey"]),
            "optimizer: loss_module has the policies hunters, prey",
        ),
        (
            lambda losses, own: (losses["prey"], own),
            "optimizer: several of them by name are for a loss_mod",
        ),
        (
            lambda losses, own: (losses, {"prey": own["prey"]}),
            "optimizer: policy 'hunters' of loss_module",
        ),
        (
            lambda losses, own: (losses, {**own, "pray": None}),
            r"optimizer\['pray'\].*did you mean 'prey'",
        ),
        (lambda losses, own: ({}, None), "the mapping from policies to losses is empty"),
        (lambda losses, own: ({"prey": 3}, None), r"loss_module\['prey'\]: a int cannot be called"),
        (lambda losses, own: ({"a.b": Fit()}, None), r"loss_module\['a.b'\]: a policy cannot be called so"),
        (
            lambda losses, own: ({"forward": Fit()}, None),
            r"loss_module\['forward'\]: a policy cannot be called so",
        ),
    ],
)
def test_what_does_not_fit_is_refused(change, told):
    with pytest.raises((ConfigError, ArgumentTypeError), match=told):
        trainer_of(*change(*both(lr=0.1)))


def test_a_batch_without_a_part_of_a_policy_is_refused():
    losses, optimizers = both(lr=0.1)
    given = [TensorDict({"hunters": batches(1)[0]["hunters"]}, [2])]
    with pytest.raises(ConfigError, match="the batch has no part of policy 'prey'; it has hunters"):
        trainer_of(losses, optimizers, given).train()
