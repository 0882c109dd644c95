"""The losses of rlcore-plugin-sac are those of TorchRL: on one minibatch, with the same weights and the same noise.

TorchRL takes the squared error where SAC and its kin take half of it here, and squares the errors that some of its
losses give as priorities; REDQ's error is there the mean of the critics and here their sum. Actions are compared in
[-1, 1], as here densities are those of scaled actions. What TorchRL samples itself is given to it: by a distribution
whose samples come from a list, and by functions of torch that are replaced. Not compared: the temperature of REDQ,
which TorchRL learns by alpha itself and from next actions too, and the entropy that it logs. CrossQ's actor normalises
the next observations by their batch there and by its running statistics here, as in the authors' code, so TorchRL's is
in evaluation mode then.
"""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_testing import make_run
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.data import Bounded
from torchrl.modules import BatchRenorm1d, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.modules.distributions import OneHotCategorical
from torchrl.objectives import CrossQLoss, DDPGLoss, DiscreteSACLoss, REDQLoss, SACLoss, TD3Loss

SAMPLES, OBSERVATIONS, ACTIONS, GAMMA, HIDDEN = 16, 3, 2, 0.9, 8
pytestmark = pytest.mark.filterwarnings("ignore")


class GivenNormal(torch.distributions.Normal):
    """A normal distribution whose noise was made before."""

    waiting: list[torch.Tensor] = []

    def rsample(self, sample_shape=()):
        return self.loc + self.scale * self.waiting.pop(0)

    def sample(self, sample_shape=()):
        return self.rsample().detach()


class GivenTanhNormal(TanhNormal):
    def update(self, loc, scale):
        super().update(loc, scale)
        self.base_dist = torch.distributions.Independent(GivenNormal(self.loc, self.scale), 1)


class MeanAndScale(nn.Module):
    """The network of an actor here, whose outputs are means and logarithms of scales."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, observation):
        mean, log_std = self.network(observation).chunk(2, -1)
        return mean, log_std.clamp(-20, 2).exp()


class QNetwork(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, observation, action):
        return self.network(torch.cat([observation, action], -1))


def built(model, loss, actions="bounded"):
    """Return loss and model of a config, with weights that are none of the beginning."""
    sections = {
        "env": {"use": "testing:toy", "actions": actions},
        "model": {"hidden": [HIDDEN], **model},
        "loss": {"gamma": GAMMA, **loss},
        "estimator": None,
        "buffer": {"use": "rollout", "minibatch_size": 8},
    }
    trainer = make_run(sections=sections).trainer
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return trainer.learner._loss, trainer.model


def made_up(loss, box=None, weights=False):
    """Return a minibatch with the noise of a loss, and the same for TorchRL."""
    generator = torch.Generator().manual_seed(5)
    unit = torch.rand(SAMPLES, ACTIONS, generator=generator) * 1.8 - 0.9
    entries = {
        "observation": torch.randn(SAMPLES, OBSERVATIONS, generator=generator),
        ("next", "observation"): torch.randn(SAMPLES, OBSERVATIONS, generator=generator),
        ("next", "reward"): torch.randn(SAMPLES, 1, generator=generator),
        ("next", "terminated"): torch.rand(SAMPLES, 1, generator=generator) < 0.3,
    }
    action = torch.randint(3, (SAMPLES,), generator=generator) if box is None else box.from_unit(unit)
    theirs = {**entries, ("next", "done"): entries["next", "terminated"], "action": action if box is None else unit}
    ours = {**entries, "action": action}
    if weights:
        ours["priority_weight"] = torch.rand(SAMPLES, 1, generator=generator)
        theirs["priority_weight"] = ours["priority_weight"].squeeze(-1)
    if getattr(loss, "sample_noise", None) is not None:
        ours |= loss.sample_noise(SAMPLES, generator)
    batch = TensorDict({}, [SAMPLES])
    for key, value in theirs.items():
        batch.set(key, value)
    return ours, batch


def one_of(critics, index):
    """Return one of the batched critics as layers of torch."""
    layers: list[nn.Module] = []
    for number, layer in enumerate(critics.layers):
        if number:
            layers.append(nn.ReLU())
        if norms := getattr(critics, "norms", None):
            layers.append(renorm(norms[number], index))
        linear = nn.Linear(*layer.weight.shape[1:])
        linear.weight.data = layer.weight[index].t().detach().clone()
        linear.bias.data = layer.bias[index, 0].detach().clone()
        layers.append(linear)
    return nn.Sequential(*layers)


def renorm(norm, index=None):
    """Return a batch renormalisation of TorchRL with the weights and statistics of one here."""
    state = {
        name: value.detach().clone() if index is None or not value.ndim else value[index, 0].detach().clone()
        for name, value in norm.state_dict().items()
    }
    warm = int(norm.updates >= norm._warmup)
    state["weight"], state["bias"] = state.pop("scale"), state.pop("shift")
    other = BatchRenorm1d(state["weight"].shape[-1], momentum=0.01, eps=1e-3, warmup_steps=1)
    state["num_batches_tracked"] = torch.tensor(warm)
    del state["updates"]
    other.load_state_dict(state)
    return other


def values(critics, discrete=False):
    """Return the critics as networks of TorchRL."""
    networks = [one_of(critics, index) for index in range(critics.critics)]
    if discrete:
        return [TensorDictModule(network, ["observation"], ["action_value"]) for network in networks]
    return [ValueOperator(QNetwork(network), in_keys=["observation", "action"]) for network in networks]


def stochastic(network):
    return ProbabilisticActor(
        TensorDictModule(MeanAndScale(network), ["observation"], ["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=GivenTanhNormal,
        return_log_prob=True,
        spec=Bounded(-1, 1, shape=(ACTIONS,)),
    )


def deterministic(network):
    return TensorDictModule(nn.Sequential(network, nn.Tanh()), ["observation"], ["action"])


def with_targets(loss, critics):
    """Give a loss of TorchRL target critics of their own."""
    stacked = torch.stack([TensorDict.from_module(network).data for network in values(critics)])
    loss.target_qvalue_network_params.data.copy_(stacked.reshape(loss.target_qvalue_network_params.shape))
    return loss


def set_gamma(loss):
    loss.make_value_estimator(gamma=GAMMA)
    return loss


def mean_weight(entries):
    """Return what a weighted mean of TorchRL is divided by, and one here is not."""
    weight = entries.get("priority_weight")
    return 1.0 if weight is None else weight.mean()


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("weights", [False, True])
def test_sac(weights):
    loss, model = built({"use": "actor-critic", "critics": 3, "initial_temperature": 0.3}, {"use": "sac"})
    ours, batch = made_up(loss, model.box, weights)
    theirs = SACLoss(
        stochastic(model.actor.network), values(model.critics), num_qvalue_nets=3, loss_function="l2", alpha_init=0.3
    )
    set_gamma(with_targets(theirs, model.target_critics)).log_alpha.data.copy_(model.temperature.log_alpha.data)
    GivenNormal.waiting = [ours["next", "noise"], ours["noise"]]
    expected, found = theirs(batch), loss(ours)
    close(found["loss_critics"], expected["loss_qvalue"] / 2 * mean_weight(ours))
    close(found["td_error"].squeeze(-1), batch["td_error"])
    if not weights:  # TorchRL weighs the losses of actor and temperature too; the paper of prioritized replay does not
        close(found["loss_actor"], expected["loss_actor"])
        close(found["loss_temperature"], expected["loss_alpha"])
        close(found["entropy"], expected["entropy"])


def test_redq(monkeypatch):
    loss, model = built(
        {"use": "actor-critic", "critics": 4, "initial_temperature": 0.3}, {"use": "sac", "target_subset": 2}
    )
    ours, batch = made_up(loss, model.box)
    theirs = REDQLoss(
        stochastic(model.actor.network), values(model.critics), num_qvalue_nets=4, loss_function="l2", alpha_init=0.3
    )
    set_gamma(with_targets(theirs, model.target_critics)).log_alpha.data.copy_(model.temperature.log_alpha.data)
    GivenNormal.waiting = [torch.stack([ours["noise"], ours["next", "noise"]])]
    chosen = ours["target_members"]
    monkeypatch.setattr(torch, "randperm", lambda count, **_: torch.cat([chosen, chosen]))
    expected = theirs(batch)
    found = loss(ours)
    close(found["loss_critics"], expected["loss_qvalue"] * 4 / 2)
    close(found["loss_actor"], expected["loss_actor"])
    close(found["td_error"].squeeze(-1), batch["td_error"].sqrt())


@pytest.mark.parametrize("weights", [False, True])
def test_td3(weights, monkeypatch):
    loss, model = built({"use": "actor-critic", "actor": "deterministic"}, {"use": "sac:td3"})
    ours, batch = made_up(loss, model.box, weights)
    theirs = TD3Loss(
        deterministic(model.actor.network),
        values(model.critics),
        bounds=(-1.0, 1.0),
        num_qvalue_nets=2,
        loss_function="l2",
        policy_noise=0.2,
        noise_clip=0.5,
    )
    set_gamma(with_targets(theirs, model.target_critics))
    own = TensorDict.from_module(deterministic(model.target_actor.network)).data
    theirs.target_actor_network_params.data.copy_(own)
    monkeypatch.setattr(torch, "randn_like", lambda _: ours["next", "noise"])
    expected, found = theirs(batch), loss(ours)
    close(found["loss_critics"], expected["loss_qvalue"] * mean_weight(ours))
    close(found["td_error"].squeeze(-1), batch["td_error"].sqrt())
    if not weights:
        close(found["loss_actor"], expected["loss_actor"])


@pytest.mark.parametrize("weights", [False, True])
def test_ddpg(weights):
    model = {"use": "actor-critic", "actor": "deterministic", "critics": 1}
    loss, model = built(model, {"use": "sac:ddpg"})
    ours, batch = made_up(loss, model.box, weights)
    actor, value = deterministic(model.actor.network), values(model.critics)[0]
    theirs = DDPGLoss(actor, value, loss_function="l2", delay_actor=True, delay_value=True)
    set_gamma(theirs)
    own = TensorDict.from_module(deterministic(model.target_actor.network)).data
    theirs.target_actor_network_params.data.copy_(own)
    theirs.target_value_network_params.data.copy_(TensorDict.from_module(values(model.target_critics)[0]).data)
    expected, found = theirs(batch), loss(ours)
    close(found["loss_critics"], expected["loss_value"] * mean_weight(ours))
    close(found["td_error"].squeeze(-1), batch["td_error"].sqrt())
    if not weights:
        close(found["loss_actor"], expected["loss_actor"])


@pytest.mark.parametrize("warm", [False, True])
def test_crossq(warm):
    """During the warm-up and after it; also how the running statistics move."""
    model = {"use": "sac:crossq", "critic_hidden": [HIDDEN], "norm_warmup": 1, "initial_temperature": 0.3}
    loss, model = built(model, {"use": "sac:crossq"})
    for norm in (module for module in model.modules() if hasattr(module, "running_mean")):
        norm.running_mean.uniform_(-0.2, 0.2, generator=torch.Generator().manual_seed(1))
        norm.updates.fill_(int(warm))
    ours, batch = made_up(loss, model.box)
    network = model.actor.network
    layers = zip(network.norms, network.layers, strict=True)
    body = [part for norm, layer in layers for part in (nn.ReLU(), renorm(norm), layer)][1:]
    theirs = CrossQLoss(
        stochastic(nn.Sequential(*body)), values(model.critics), num_qvalue_nets=2, loss_function="l2", alpha_init=0.3
    )
    set_gamma(theirs).log_alpha.data.copy_(model.temperature.log_alpha.data)
    GivenNormal.waiting = [ours["next", "noise"], ours["noise"]]
    before = theirs.qvalue_network_params.data.clone()
    theirs.actor_network.eval()
    critics, about = theirs.qvalue_loss(batch)
    moved = theirs.qvalue_network_params.data.clone()
    theirs.qvalue_network_params.data.copy_(before)  # here each loss is taken by the statistics before the update
    theirs.actor_network.train()
    actor, metadata = theirs.actor_loss(batch)
    found = loss(ours)
    close(found["loss_critics"], critics / 2)
    close(found["td_error"].squeeze(-1), about["td_error"])
    close(found["loss_actor"], actor)
    close(found["loss_temperature"], theirs.alpha_loss(metadata["log_prob"]).mean())
    for number, norm in enumerate(model.critics.norms):
        for name in ("running_mean", "running_var"):
            place = ("module", "network", str(3 * number), name)
            close(getattr(norm, name)[:, 0], moved[place])
            assert not torch.equal(moved[place], before[place])


@pytest.mark.parametrize("weights", [False, True])
def test_discrete_sac(weights):
    loss, model = built(
        {"use": "sac:discrete-actor-critic", "initial_temperature": 0.3},
        {"use": "sac:discrete-sac", "target_entropy": 0.7},
        actions="discrete",
    )
    ours, batch = made_up(loss, None, weights)
    body = TensorDictModule(model.actor.network, ["observation"], ["logits"])
    actor = ProbabilisticActor(body, in_keys=["logits"], distribution_class=OneHotCategorical)
    theirs = DiscreteSACLoss(
        actor,
        values(model.critics, discrete=True),
        action_space="categorical",
        num_actions=3,
        num_qvalue_nets=2,
        loss_function="l2",
        target_entropy_weight=0.7,
    )
    targets = torch.stack([TensorDict.from_module(n).data for n in values(model.target_critics, discrete=True)])
    theirs.target_qvalue_network_params.data.copy_(targets)
    set_gamma(theirs).log_alpha.data.copy_(model.temperature.log_alpha.data)
    expected, found = theirs(batch), loss(ours)
    close(found["loss_critics"], expected["loss_qvalue"] / 2 * mean_weight(ours))
    close(found["td_error"].squeeze(-1), batch["td_error"])
    if not weights:
        close(found["loss_actor"], expected["loss_actor"])
        close(found["loss_temperature"], expected["loss_alpha"])
        close(found["entropy"], expected["entropy"])
