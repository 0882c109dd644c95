"""The losses, their gradients, the targets and the planned actions are those of the authors' implementation."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_tdmpc2.loss import TDMPC2Loss
from rlcore_plugin_tdmpc2.model import TDMPC2Model
from rlcore_plugin_testing.reference import double_arrays

from rlcore.types import MASK, Context, EnvSpec

GAMMA, STEPS, SEQUENCES, ACTIONS = 0.97, 3, 6, 2
LAYERS = {"weight": "weight", "bias": "bias", "ln.weight": "norm_weight", "ln.bias": "norm_bias"}
NETWORKS = {"encoder": "_encoder.state", "dynamics": "_dynamics", "reward": "_reward", "prior.network": "_pi"}
TRAINED = ("encoder", "dynamics", "reward")


@pytest.fixture(scope="module")
def reference():
    return double_arrays(Path(__file__).with_name("reference.npz"))


def of_network(model, name):
    """Yield each parameter of a network, and its name in the reference."""
    for number, layer in enumerate(model.get_submodule(name).layers):
        for theirs, ours in LAYERS.items():
            if hasattr(layer, ours):
                yield getattr(layer, ours), f"{NETWORKS[name]}.{number}.{theirs}"


def of_critics(critics):
    """Yield each parameter of an ensemble, its name in the reference, and how the reference has its dimensions."""
    for number, layer in enumerate((*critics.layers, critics.last)):
        yield layer.weight, f"{number}.weight", lambda value: value.transpose(1, 2)
        yield layer.bias, f"{number}.bias", lambda value: value.squeeze(1)
    for number, norm in enumerate(critics.norms):
        yield norm.weight, f"{number}.ln.weight", lambda value: value.squeeze(1)
        yield norm.bias, f"{number}.ln.bias", lambda value: value.squeeze(1)


@pytest.fixture
def context():
    spaces = gymnasium.spaces.Box(-9, 9, (3,), np.float32), gymnasium.spaces.Box(-1, 1, (ACTIONS,), np.float32)
    context = Context.alone("reference")
    context.parts["env_spec"] = EnvSpec("reference", *spaces, 1)
    return context


@pytest.fixture(params=[0.3, 1.0], ids=["slow encoder", "one rate"])
def model(request, reference, context):
    config = TDMPC2Model.Config(
        latent_size=8,
        encoder_hidden=[6],
        hidden=[10, 10],
        simplex=4,
        dropout=0.0,
        bins=21,
        gamma=GAMMA,
        samples=24,
        prior_samples=4,
        iterations=4,
        elites=6,
        random_frames=0,
        encoder_rate=request.param,
    )
    model = TDMPC2Model(config, context).double()
    with torch.no_grad():
        for name in NETWORKS:
            for parameter, theirs in of_network(model, name):
                rate = request.param if name == "encoder" else 1.0
                parameter.copy_(reference[f"weights/{theirs}"] / rate)
        for critics, theirs in ((model.critics, "critics"), (model.target_critics, "targets")):
            for parameter, name, _ in of_critics(critics):
                value = reference[f"{theirs}/{name}"]
                parameter.copy_(value.transpose(1, 2) if name[2:] == "weight" else value.unsqueeze(1))
    context.parts["model"] = model
    return model


def entries_of(reference, noise):
    """Return the minibatch of the reference as the buffer has it; its last row is that after the last step."""

    def with_one_more(values):
        return torch.cat([values, torch.zeros_like(values[:1])])

    trained = with_one_more(torch.ones(STEPS, SEQUENCES, 1, dtype=torch.bool))
    return {
        "observation": reference["observation"],
        "action": with_one_more(reference["action"]),
        ("next", "reward"): with_one_more(reference["reward"]),
        ("next", "terminated"): torch.zeros_like(trained),
        "steps_to_next_obs": trained.long(),
        MASK: trained,
        ("next", "noise"): reference[f"{noise}/0"].flatten(0, 1),
        "target_members": reference[f"{noise}/1"][:2],
        **(
            {"noise": reference[f"{noise}/2"].flatten(0, 1), "prior_members": reference[f"{noise}/3"][:2]}
            if noise == "update_noise"
            else {}
        ),
    }


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-7)


def loss_of(context, **config):
    return TDMPC2Loss(TDMPC2Loss.Config(entropy=0.1, **config), context)


def test_targets_are_those_of_the_reference(model, context, reference):
    loss, entries = loss_of(context), entries_of(reference, "target_noise")
    with torch.no_grad():
        following = model.encoder(reference["observation"][1:])
        close(loss._target(entries, following, reference["reward"]), reference["td_target"])


def test_losses_and_gradients_are_those_of_the_reference(model, context, reference):
    loss = loss_of(context)
    losses = loss(entries_of(reference, "update_noise"))
    names = {
        "loss_model": "total_loss",
        "consistency": "consistency_loss",
        "reward_error": "reward_loss",
        "value_error": "value_loss",
        "prior_entropy": "pi_entropy",
        "q_scale": "pi_scale",
    }
    for ours, theirs in names.items():
        close(losses[ours].detach(), reference[f"info/{theirs}"])
    # they multiply an entropy by a number over itself plus 1e-8
    torch.testing.assert_close(losses["loss_prior"].detach(), reference["info/pi_loss"], atol=1e-7, rtol=1e-7)
    sum(losses[name] for name in loss.loss_names).backward()
    for name in NETWORKS:
        kind, rate = ("gradients", 1.0) if name in TRAINED else ("prior_gradients", 1.0)
        rate = model.encoder.layers[0]._rate if name == "encoder" else rate
        for parameter, theirs in of_network(model, name):
            torch.testing.assert_close(parameter.grad / rate, reference[f"{kind}/{theirs}"], atol=1e-7, rtol=1e-6)
    for parameter, theirs, as_theirs in of_critics(model.critics):
        close(as_theirs(parameter.grad), reference[f"gradients/params.{theirs}"])


def test_targets_move_as_those_of_the_reference(model, context, reference):
    loss_of(context).target_updater.step()
    for parameter, theirs, as_theirs in of_critics(model.target_critics):
        close(as_theirs(parameter), reference[f"moved_targets/{theirs}"])


def noise_of(reference, step):
    """Return what the planner takes for the noise that the reference drew in a step, `[1, noise_size]`."""
    drawn = [reference[f"plan_noise/{step}/{number}"] for number in range(17)]
    rounds = [drawn[3 + 3 * number : 6 + 3 * number] for number in range(4)]
    # the planner takes the critics whose numbers are the largest, and the reference those that come first
    order = [
        -torch.empty(5, dtype=torch.float64).scatter_(0, own[2], torch.arange(5.0, dtype=torch.float64))
        for own in rounds
    ]
    pieces = [
        torch.stack(drawn[:3]),
        torch.stack([own[0] for own in rounds]),
        torch.stack([own[1] for own in rounds]),
        torch.stack(order),
        torch.special.ndtri((-drawn[15]).exp()),  # from exponential numbers to normal ones
        drawn[16],
    ]
    return torch.cat([piece.flatten() for piece in pieces]).unsqueeze(0)


def test_planned_actions_are_those_of_the_reference(model, reference):
    policy = model.policy
    state = torch.full((1, 6), 0.7, dtype=torch.float64)  # which does not count where an episode begins
    for step in range(4):
        observation, first = reference["observation"][step, :1], torch.tensor([step == 0])
        with torch.inference_mode():
            action, _, state = policy.act(observation, noise_of(reference, step), state, first)
        # they divide by sums of weights plus 1e-9
        torch.testing.assert_close(action[0].clone(), reference[f"planned/{step}"], atol=1e-7, rtol=1e-6)
        torch.testing.assert_close(state.view(3, 2).clone(), reference[f"plan/{step}"], atol=1e-7, rtol=1e-6)
