"""The losses of rlcore-plugin-offline are those of TorchRL, and those of the papers' equations written out here.

One minibatch, the same weights, the same noise. TorchRL's CQL sums over one action of each kind for each of its
samples; so one of each is drawn where it is compared, and several beside the equation. It takes the values of the
policy's next actions in the next observations, where the authors' code and this one take them in the present ones; so
both are the same where it is compared. Its critics' error is whole where that of SAC is half of it here.
"""

from __future__ import annotations

import math

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.data import Categorical
from torchrl.modules import IndependentNormal, ProbabilisticActor, QValueActor
from torchrl.objectives import CQLLoss, DiscreteCQLLoss, IQLLoss, TD3BCLoss

from . import test_actor_critic_losses as common

pytestmark = pytest.mark.filterwarnings("ignore")
STOCHASTIC = {"use": "sac:actor-critic", "initial_temperature": 0.3}


class TanhAndSpread(nn.Module):
    """The actor of IQL here: means of a normal distribution, and a spread for all observations."""

    def __init__(self, network, spread):
        super().__init__()
        self.network, self.spread = network, spread

    def forward(self, observation):
        mean = self.network(observation).tanh()
        return mean, self.spread().exp().expand_as(mean)


@pytest.mark.parametrize(("expectile", "temperature"), [(0.7, 3.0), (0.9, 10.0)])
def test_iql(expectile, temperature):
    numbers = {"expectile": expectile, "inverse_temperature": temperature}
    loss, model = common.built({"use": "offline:iql"}, {"use": "offline:iql", **numbers})
    ours, batch = common.made_up(loss, model.box)
    actor = ProbabilisticActor(
        TensorDictModule(TanhAndSpread(model.actor.network, model.spread), ["observation"], ["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=IndependentNormal,
    )
    value = TensorDictModule(model.value, ["observation"], ["state_value"])
    theirs = IQLLoss(
        actor,
        common.values(model.critics),
        value,
        num_qvalue_nets=2,
        loss_function="l2",
        expectile=expectile,
        temperature=temperature,
    )
    common.set_gamma(common.with_targets(theirs, model.target_critics))
    expected, found = theirs(batch), loss(ours)
    common.close(found["loss_value"], expected["loss_value"])
    common.close(found["loss_critics"], expected["loss_qvalue"])
    common.close(found["loss_actor"], expected["loss_actor"])


@pytest.mark.parametrize("alpha", [0.4, 2.5])
def test_td3_bc(alpha, monkeypatch):
    loss, model = common.built(
        {"use": "sac:actor-critic", "actor": "deterministic"}, {"use": "offline:td3-bc", "alpha": alpha}
    )
    ours, batch = common.made_up(loss, model.box)
    theirs = TD3BCLoss(
        common.deterministic(model.actor.network),
        common.values(model.critics),
        bounds=(-1.0, 1.0),
        num_qvalue_nets=2,
        loss_function="l2",
        policy_noise=0.2,
        noise_clip=0.5,
        alpha=alpha,
    )
    common.set_gamma(common.with_targets(theirs, model.target_critics))
    own = TensorDict.from_module(common.deterministic(model.target_actor.network)).data
    theirs.target_actor_network_params.data.copy_(own)
    monkeypatch.setattr(torch, "randn_like", lambda _: ours["next", "noise"])
    expected, found = theirs(batch), loss(ours)
    common.close(found["loss_critics"], expected["loss_qvalue"])
    common.close(found["loss_actor"], expected["loss_actor"])


def test_cql(monkeypatch):
    keys = {"use": "offline:cql", "conservative_samples": 1, "conservative_weight": 0.7}
    loss, model = common.built(STOCHASTIC, keys)
    ours, batch = common.made_up(loss, model.box)
    ours["next", "observation"] = ours["observation"]
    batch["next", "observation"] = batch["observation"]
    theirs = CQLLoss(
        common.stochastic(model.actor.network),
        common.values(model.critics),
        loss_function="l2",
        alpha_init=0.3,
        num_random=1,
        min_q_weight=0.7,
    )
    common.set_gamma(common.with_targets(theirs, model.target_critics)).log_alpha.data.copy_(
        model.temperature.log_alpha.data
    )
    current, following = (noise[0] for noise in ours["conservative_noise"])
    common.GivenNormal.waiting = [ours["next", "noise"], current, following]
    monkeypatch.setattr(torch.Tensor, "uniform_", lambda self, *_: self.copy_(ours["conservative_uniform"][0]))
    error, _ = theirs.q_loss(batch)
    conservative, _ = theirs.cql_loss(batch)
    found = loss(ours)
    common.close(found["conservative_gap"] * 2 * 0.7, conservative)
    # TorchRL takes densities by the inverse of tanh, which has few digits where actions are near their bounds
    error_here = found["loss_critics"] - found["conservative_gap"] * 2 * 0.7
    torch.testing.assert_close(error_here, error, rtol=1e-3, atol=0)


def test_cql_of_several_actions_is_the_equation_of_the_paper():
    """Equation 4 with the importance weights of appendix F, sample by sample and action by action."""
    count = 4
    loss, model = common.built(STOCHASTIC, {"use": "offline:cql", "conservative_samples": count})
    ours, _ = common.made_up(loss, model.box)
    expected = torch.zeros(2)
    for row in range(common.SAMPLES):
        seen, following = ours["observation"][row], ours["next", "observation"][row]
        terms = []
        for number in range(count):
            terms.append((ours["conservative_uniform"][number, row], common.ACTIONS * math.log(0.5)))
            for which, where in enumerate((seen, following)):
                mean, log_std = model.actor.network(where).chunk(2, -1)
                scale = log_std.clamp(-20, 2).exp()
                noise = ours["conservative_noise"][which, number, row]
                unit = (mean + scale * noise).tanh()
                density = torch.distributions.Normal(0.0, 1.0).log_prob(noise) - scale.log() - (1 - unit**2).log()
                terms.append((unit, density.sum()))
        for critic in range(2):
            network = common.one_of(model.critics, critic)
            values = torch.stack([network(torch.cat([seen, unit]))[0] - density for unit, density in terms])
            taken = network(torch.cat([seen, model.box.to_unit(ours["action"][row])]))[0]
            expected[critic] += (values.exp().sum().log() - taken).detach() / common.SAMPLES
    common.close(loss(ours)["conservative_gap"], expected.mean())


def test_discrete_cql():
    loss, model = common.built(
        {"use": "dqn:q-network"}, {"use": "offline:discrete-cql", "conservative_weight": 0.7}, actions="discrete"
    )
    ours, batch = common.made_up(loss)
    network = QValueActor(_QNetwork(model), in_keys=["observation"], spec=Categorical(3), action_space="categorical")
    theirs = DiscreteCQLLoss(network, loss_function="l2", action_space="categorical")
    common.set_gamma(theirs)
    theirs.value_loss(batch)
    expected, _ = theirs.cql_loss(batch)
    common.close(loss(ours)["loss_conservative"], 0.7 * expected)


class _QNetwork(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, observation):
        return self.model.q_values(observation)
