"""What an optimizer must keep: the parameters that its section names, progress on a simple loss, its state."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlcore.errors import ConfigError
from rlcore.types.context import Context
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.contracts.base import ComponentContract, saved


class OptimizerContract(ComponentContract):
    """Base of the tests of an optimizer."""

    kind = "optimizer"

    def test_covers_the_whole_model_once(self) -> None:
        """Without `parameters` everything is trained, and a shared weight is stepped once."""
        context = self.bench()
        optimizer = self.make(context)
        assert isinstance(optimizer, torch.optim.Optimizer), f"{type(optimizer).__name__} is no torch.optim.Optimizer"
        found = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
        assert len(found) == len(set(found)), "a parameter is in the optimizer twice"
        assert set(found) == {id(p) for p in _weights(context)}, "not exactly the model's parameters are optimised"

    def test_covers_only_the_named_parts(self) -> None:
        """`parameters = ["critic"]` leaves the actor alone."""
        context = self.bench()
        optimizer = self.make(context, parameters=["critic"])
        found = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        model: Any = context.model
        assert found == {id(parameter) for parameter in model.critic.parameters()}, (
            "parameters = ['critic'] is not obeyed"
        )

    def test_refuses_an_unknown_part(self) -> None:
        """A misspelt part must not train the wrong weights."""
        with pytest.raises(ConfigError, match="actro"):
            self.make(self.bench(), parameters=["actro"])

    def test_carries_the_names_of_its_losses(self) -> None:
        """The learner reads `losses`, so that several optimizers can share one model."""
        context = self.bench()
        assert tuple(self.make(context).losses) == (), "without the key `losses`, optimizer.losses must be empty"
        assert tuple(self.make(context, losses=["loss_critic"]).losses) == ("loss_critic",)

    def test_gives_its_numbers_to_schedulers(self) -> None:
        """A scheduler sets the numbers that `defaults` names."""
        optimizer = self.make(self.bench(), lr=0.125)
        assert optimizer.defaults["lr"] == 0.125
        assert all(group["lr"] == 0.125 for group in optimizer.param_groups)

    def test_steps_downhill(self) -> None:
        """Some steps lower a squared error."""
        context = self.bench()
        optimizer = self.make(context)
        losses = [self._step(context, optimizer) for _ in range(20)]
        assert losses[-1] < losses[0], f"20 steps went from {losses[0]:.4f} to {losses[-1]:.4f}"

    def test_state_is_restored(self) -> None:
        """The next step after a resume is the next step without one, to the bit."""
        first, second = self.bench(), self.bench()
        used, other = self.make(first), self.make(second)
        for _ in range(3):
            self._step(first, used)
        state = saved(used)
        with torch.no_grad():
            for source, target in zip(_weights(first), _weights(second), strict=True):
                target.copy_(source)
        other.load_state_dict(state)
        for context, optimizer in ((first, used), (second, other)):
            self._step(context, optimizer)
        where = difference([p.detach() for p in _weights(first)], [p.detach() for p in _weights(second)])
        assert where is None, f"the optimizer steps differently after a resume: {where}"

    def _step(self, context: Context, optimizer: torch.optim.Optimizer) -> float:
        loss = torch.stack([(parameter - 0.3).square().sum() for parameter in _weights(context)]).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.item()


def _weights(context: Context) -> list[torch.nn.Parameter]:
    model: Any = context.model
    return list(model.parameters())
