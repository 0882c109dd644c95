"""Losses, gradients, steps of the optimizer, and encoded and predicted images are those of the authors."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_dreamer.laprop import LaProp
from rlcore_plugin_dreamer.loss import DreamerLoss
from rlcore_plugin_dreamer.model import DreamerModel
from rlcore_plugin_testing.reference import double_arrays, under

from rlcore.types import FIRST, MASK, POLICY_STATE, Context, EnvSpec

STEPS, SEQUENCES, IMAGINED, DETER = 5, 3, 3, 8
VECTOR, IMAGE = gymnasium.spaces.Box(-9, 9, (4,), np.float32), gymnasium.spaces.Box(0, 255, (64, 48, 3), np.uint8)
ACTIONS = {"numbered": gymnasium.spaces.Discrete(3), "numbers": gymnasium.spaces.Box(-1, 1, (3,), np.float32)}
ACTOR = {"numbered": ["logits"], "numbers": ["mean", "stddev"]}  # one layer here
TERMS = {
    "world/observation": "vector",
    "world/reward": "rew",
    "world/continuation": "con",
    "world/dynamics": "dyn",
    "world/representation": "rep",
    "loss_actor": "policy",
    "loss_critic": "value",
}
# the layers here, and those of the reference
NORMED = {
    **{f"encoder.hidden.{number}": f"enc/mlp{number}" for number in range(3)},
    **{f"encoder.layers.{number}": f"enc/cnn{number}" for number in range(4)},
    **{f"decoder.layers.{number}": f"dec/conv{2 - number}" for number in range(3)},
    "decoder.of_stoch.0": "dec/sp1",
    "rssm.of_deter": "dyn/dynin0",
    "rssm.of_stoch": "dyn/dynin1",
    "rssm.of_action": "dyn/dynin2",
    "rssm.prior_hidden.0": "dyn/prior0",
    "rssm.prior_hidden.1": "dyn/prior1",
    "rssm.posterior_hidden": "dyn/obs0",
}
HEADS = {
    "decoder.head": ("dec", "vec/vector/pred"),
    "reward": ("rew", "head/logits"),
    "continuation": ("con", "head/logit"),
    "critic": ("val", "head/logits"),
    "target_critic": ("slowval", "head/logits"),
    "actor": ("pol", "head/action"),
}
LAYERS = {
    "rssm.mix": "dyn/dynhid0",
    "rssm.mix_norm": "dyn/dynhid0norm",
    "rssm.gates": "dyn/dyngru",
    "rssm.prior_logits": "dyn/priorlogit",
    "rssm.posterior_logits": "dyn/obslogit",
    "decoder.of_deter": "dec/sp0",
    "decoder.of_stoch.1": "dec/sp2",
    "decoder.norm": "dec/spnorm",
    "decoder.layers.3.conv": "dec/imgout",
}
for name, theirs in NORMED.items():
    LAYERS |= {f"{name}.linear": theirs, f"{name}.conv": theirs, f"{name}.norm": f"{theirs}norm"}
for name, (theirs, out) in HEADS.items():
    LAYERS[f"{name}.out"] = f"{theirs}/{out}"
    for number in range(3):
        LAYERS[f"{name}.hidden.{number}.linear"] = f"{theirs}/mlp/linear{number}"
        LAYERS[f"{name}.hidden.{number}.norm"] = f"{theirs}/mlp/norm{number}"


@pytest.fixture(scope="module")
def reference():
    return double_arrays(Path(__file__).with_name("reference.npz"))


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def pairs(parameters, arrays, kind="numbered"):
    """Yield parameters by name, and what the reference has for each, with its dimensions in the order here."""
    for name, parameter in parameters:
        layer, leaf = name.rsplit(".", 1)
        leaf = "scale" if layer.endswith("norm") else leaf.replace("weight", "kernel")
        layers = [f"{LAYERS[layer]}/{part}" for part in ACTOR[kind]] if layer == "actor.out" else [LAYERS[layer]]
        value = torch.cat([arrays[f"{name}/{leaf}"] for name in layers], -1)
        if layer == "decoder.head.hidden.0.linear" and leaf == "kernel":
            value = value.roll(DETER, 0)  # theirs takes the latents first
        if value.ndim in (2, 4):
            value = value.movedim((-1, -2), (0, 1))
        yield parameter, value.reshape(parameter.shape)


def model_of(kind, observation, reference):
    """Return a context and its model, which has the weights of the reference where they fit the observations."""
    context = Context.alone("reference")
    context.parts["env_spec"] = EnvSpec("reference", observation, ACTIONS[kind], 1)
    widths = {"deter": DETER, "hidden": 6, "latents": 3, "classes": 4, "units": 5, "depth": 1, "blocks": 2}
    # the authors' code leaves out the uniform share of actions, which the paper has
    model = DreamerModel(DreamerModel.Config(**widths, action_unimix=0.0), context)
    context.parts["model"] = model
    weights = under(reference, "weights")
    parts = ("encoder", "decoder") if observation is IMAGE else model.parts()
    with torch.no_grad():
        for part in parts:
            for parameter, value in pairs(model.get_submodule(part).named_parameters(part), weights, kind):
                parameter.copy_(value)
    return context, model


def entries_of(batch, model):
    """Return a batch of the reference as the buffer has it; the reference has actions and rewards where they lead."""
    by_time = {name: batch[name].transpose(0, 1) for name in ("vector", "action", "reward", "is_first", "is_terminal")}
    steps = {name: torch.cat([value[1:], torch.zeros_like(value[:1])]) for name, value in by_time.items()}
    mask = torch.ones(STEPS, SEQUENCES, 1, dtype=torch.bool)
    mask[-1] = False
    drawn = [batch[f"noise/{number}"] for number in range(STEPS + 2 * IMAGINED)]
    action, prior = (
        torch.stack(values).view(IMAGINED, SEQUENCES, STEPS, -1).transpose(1, 2).flatten(1, 2)
        for values in (drawn[STEPS::2], drawn[STEPS + 1 :: 2])
    )
    return {
        "observation": by_time["vector"],
        "action": steps["action"],
        FIRST: by_time["is_first"].unsqueeze(-1),
        POLICY_STATE: model.carried.packed(
            batch["deter"], batch["stoch"].argmax(-1), model.actions.from_env(by_time["action"][0])
        ),
        MASK: mask,
        ("next", "reward"): steps["reward"].unsqueeze(-1),
        ("next", "terminated"): steps["is_terminal"].unsqueeze(-1),
        "posterior_noise": torch.cat(drawn[:STEPS]),
        "prior_noise": prior,
        "action_noise": action,
    }


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ACTIONS)
def test_an_update_is_that_of_the_reference(kind, reference):
    context, model = model_of(kind, VECTOR, reference)
    model.return_bounds.bounds.copy_(torch.tensor([-0.5, 2.0]))
    loss, batch = DreamerLoss(DreamerLoss.Config(imagination=IMAGINED, free_nats=2.5), context), under(reference, kind)
    losses = loss(entries_of(batch, model))
    for ours, theirs in TERMS.items():
        close(losses[ours].detach(), batch[f"losses/{theirs}"])
    close(losses["loss_replayed_values"].detach(), 0.3 * batch["losses/repval"])
    sum(value for name, value in losses.items() if name.startswith("loss_")).backward()
    trained = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
    for parameter, gradient in pairs(trained, under(batch, "gradients"), kind):
        close(parameter.grad, gradient)
    loss.target_updater.step()
    close(model.return_bounds.bounds, batch["bounds"])
    for parameter, moved in pairs(model.target_critic.named_parameters("target_critic"), under(batch, "moved")):
        close(parameter.detach(), moved)


@pytest.mark.parametrize("kind", ACTIONS)
@torch.no_grad()
def test_a_step_of_the_policy_is_that_of_the_reference(kind, reference):
    _, model = model_of(kind, VECTOR, reference)
    batch = under(reference, kind)
    entries, acted = entries_of(batch, model), under(batch, "acted")
    noise = torch.cat([acted["noise/0"], acted["noise/1"].view(SEQUENCES, -1)], -1)
    first = entries[FIRST][0].squeeze(-1)
    action, _, state = model.policy.act(entries["observation"][0], noise, entries[POLICY_STATE], first)
    latent, encoded = model.carried.unpacked(state)
    close(latent.deter, acted["deter"])
    close(latent.stoch, acted["stoch"].flatten(-2))
    close(encoded if kind == "numbers" else action, acted["action"])  # numbers are cut for the env alone


def test_steps_of_laprop_are_those_of_the_reference(reference):
    context, model = model_of("numbered", VECTOR, reference)
    optimizer = LaProp(LaProp.Config(lr=0.01, warmup=3, parameters=["rssm"]), context)
    gradients = [under(reference, f"{kind}/gradients") for kind in ACTIONS]
    for step in range(6):
        for parameter, gradient in pairs(model.rssm.named_parameters("rssm"), gradients[step % 2]):
            parameter.grad = 10.0 ** (step - 3) * gradient
        optimizer.step()
    for parameter, moved in pairs(model.rssm.named_parameters("rssm"), under(reference, "optimized")):
        close(parameter.detach(), moved)


@torch.no_grad()
def test_images_are_those_of_the_reference(reference):
    _, model = model_of("numbers", IMAGE, reference)
    images = under(reference, "images")
    tokens = model.float().encoder(images["image"]).view(-1, 4, 3).movedim(0, -1)  # theirs has the channels last
    torch.testing.assert_close(tokens.double().flatten(), images["tokens"].flatten(), rtol=1e-5, atol=1e-6)
    decoded = model.double().decoder(images["deter"], images["stoch"].flatten(-2))
    close(decoded.movedim(-3, -1), images["decoded"])
