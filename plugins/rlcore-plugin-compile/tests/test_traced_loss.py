"""A loss as a function of tensors: also where parts of the model share weights."""

import pytest
import torch
from rlcore_plugin_compile.traced_loss import TracedLoss
from torch import nn


class Shared(nn.Module):
    """Two parts of one body, as with a shared encoder; and a layer whose weights are those of another, if `tied`."""

    def __init__(self, tied):
        super().__init__()
        body = nn.Linear(3, 2)
        self.actor = nn.Sequential(body, nn.Linear(2, 1))
        self.critic = nn.Sequential(body, nn.Linear(2, 1))
        if tied:
            self.critic[1].weight = self.actor[1].weight

    def forward(self, minibatch):
        seen = minibatch["observation"]
        return {"loss_objective": (self.actor(seen) * self.critic(seen)).mean()}


@pytest.mark.parametrize("tied", [False, True])
def test_shared_weights_are_replaced_everywhere_and_put_back(tied):
    torch.manual_seed(0)
    loss, entries = Shared(tied), {"observation": torch.randn(5, 3)}
    parameters = dict(loss.named_parameters())
    traced = TracedLoss(loss, None, entries, [()], {"adam": list(parameters.values())})
    values = {name: value.detach().clone() for name, value in parameters.items()}
    gradients = torch.func.grad(lambda tensors: traced.computed(entries, tensors)["loss_objective"])(values)
    assert all(own is parameters[name] for name, own in loss.named_parameters())
    assert loss.actor[0] is loss.critic[0]
    loss(entries)["loss_objective"].backward()
    for name, parameter in parameters.items():
        torch.testing.assert_close(gradients[name], parameter.grad)
    expected = loss(entries)["loss_objective"].item() * 4
    doubled = {name: 2 * value if name.startswith(("actor.1", "critic.1")) else value for name, value in values.items()}
    assert float(traced.computed(entries, doubled)["loss_objective"]) == pytest.approx(expected, rel=1e-5)
