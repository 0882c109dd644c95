"""Outputs, losses, gradients, steps, targets and the scale of rewards are those of the authors' implementation."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_flashsac.batch import Statistics
from rlcore_plugin_flashsac.bounds import bounds_of, keep
from rlcore_plugin_flashsac.loss import CategoricalSACLoss
from rlcore_plugin_flashsac.model import BlocksModel
from rlcore_plugin_flashsac.return_scale import ReturnScale, RewardScale
from rlcore_plugin_gradient.optimizers import AdamConfig, adam
from rlcore_plugin_testing.reference import double_arrays, under

from rlcore.types import Context, EnvSpec

GAMMA, LR, STEPS = 0.97, 0.01, 3
SPACES = gymnasium.spaces.Box(-9, 9, (4,), np.float32), gymnasium.spaces.Box(-1, 1, (3,), np.float32)
PARTS = {"actor": "actor", "critics": "critic", "target_critics": "target"}
# the layers here, and those of the reference
LAYERS = {"entry.norm": "embedder.norm", "entry.map": "embedder.w", "last_norm": "post_norm"}
for block in range(2):
    LAYERS[f"blocks.{block}.widen.map"] = f"encoder.{block}.w1"
    LAYERS[f"blocks.{block}.widen.norm"] = f"encoder.{block}.norm1"
    LAYERS[f"blocks.{block}.narrow.map"] = f"encoder.{block}.w2"
    LAYERS[f"blocks.{block}.narrow.norm"] = f"encoder.{block}.norm2"
HEADS = {
    (True, "weight"): ("mean_w.w.weight", "std_w.w.weight"),
    (True, "bias"): ("mean_bias", "std_bias"),
    (False, "weight"): ("w.weight",),
    (False, "bias"): ("bias",),
}  # of the actor or not
LEAVES = {"scale": "weight", "shift": "bias"}


@pytest.fixture(scope="module")
def reference():
    return double_arrays(Path(__file__).with_name("reference.npz"))


@pytest.fixture(autouse=True)
def _double(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def pairs(part, tensors, arrays):
    """Yield tensors of a part by name, and what the reference has for each, with its dimensions in the order here."""
    for name, tensor in tensors:
        layer, leaf = name.removeprefix("network.").rsplit(".", 1)
        if layer == "head":
            names = [f"predictor.{theirs}" for theirs in HEADS[part == "actor", leaf]]
        elif leaf == "weight" and part == "actor":
            names = [f"{LAYERS[layer]}.w.weight"]
        else:
            names = [f"{LAYERS[layer]}.{LEAVES.get(leaf, leaf)}"]
        outputs = -2 if leaf == "weight" else -1
        value = torch.cat([arrays[theirs] for theirs in names], outputs)
        yield tensor, (value.mT if leaf == "weight" else value).reshape(tensor.shape)


def state(part):
    """Return parameters and running statistics by name."""
    return [(name, value) for name, value in part.state_dict(keep_vars=True).items() if name != "support"]


@pytest.fixture
def context(reference):
    context = Context.alone("reference")
    context.parts["env_spec"] = EnvSpec("reference", *SPACES, 1)
    context.parts["transforms"] = [ReturnScale(ReturnScale.Config(gamma=GAMMA), context)]
    config = BlocksModel.Config(width=5, critic_width=6, atoms=21, random_frames=0)
    model = context.parts["model"] = BlocksModel(config, context)
    with torch.no_grad():
        for part, theirs in PARTS.items():
            module = model.get_submodule(part)
            for tensor, value in pairs(part, state(module), under(reference, f"weights/{theirs}")):
                tensor.copy_(value)
            keep(bounds_of([module], "all"))
        model.temperature.log_alpha.copy_(reference["log_alpha"].squeeze())
    return context


def loss_of(context, **config):
    loss = CategoricalSACLoss(CategoricalSACLoss.Config(gamma=GAMMA, target_tau=0.1, **config), context)
    loss.reward_scale.value.fill_(1.0)  # rewards of the reference are scaled; before the first it is 1 + 5e-9
    return loss


def optimizer_of(context, part):
    return adam(AdamConfig(lr=LR, parameters=[part]), context)


def entries_of(reference, number, drawn):
    """Return a minibatch of the reference as the buffer has it, and the noise of an update."""
    batch = under(reference, f"batches/{number}")
    return {
        "observation": batch["observation"],
        "action": batch["action"],
        ("next", "observation"): batch["next_observation"],
        ("next", "reward"): batch["reward"].unsqueeze(-1),
        ("next", "terminated"): batch["terminated"].unsqueeze(-1) > 0,
        "steps_to_next_obs": torch.full((len(batch["reward"]), 1), STEPS),
        "noise": reference.get(f"{drawn}/noise"),
        ("next", "noise"): reference[f"{drawn}/next_noise"],
    }


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-11)


def all_close(part, tensors, arrays):
    for tensor, value in pairs(part, tensors, arrays):
        close(tensor.detach(), value)


@pytest.mark.parametrize("part", ["actor", "critics"])
def test_bounds_are_those_of_the_reference(part, context, reference):
    module = context.model.get_submodule(part)
    all_close(part, module.named_parameters(), under(reference, f"bounded/{PARTS[part]}"))


@pytest.mark.parametrize(("kind", "statistics"), [("evaluation", Statistics.RUNNING), ("training", Statistics.MOVED)])
@torch.no_grad()
def test_outputs_and_statistics_are_those_of_the_reference(kind, statistics, context, reference):
    model, batch, outputs = context.model, under(reference, "batches/0"), under(reference, kind)
    mean, log_std = model.actor.parameters_of(batch["observation"], statistics).chunk(2, -1)
    close(mean, outputs["mean"])
    close(log_std.exp(), outputs["std"])
    log_probs = model.critics.log_probs(batch["observation"], batch["action"], statistics=statistics)
    close(log_probs, outputs["log_probs"])
    if kind == "evaluation":
        close(model.critics.values(batch["observation"], batch["action"]).squeeze(-1), outputs["values"])
        close(model.policy.mode(batch["observation"]), outputs["mean"].tanh())
        return
    for part in ("actor", "critics"):
        buffers = [(name, value) for name, value in state(model.get_submodule(part)) if "running" in name]
        all_close(part, buffers, under(outputs, PARTS[part]))


def test_losses_at_equal_weights_and_their_gradients_are_those_of_the_reference(context, reference):
    loss, model, updates = loss_of(context), context.model, under(reference, "updates")
    losses = loss(entries_of(reference, 0, "updates"))
    close(losses["loss_actor"].detach(), updates["actor/loss"])
    close(losses["entropy"], updates["actor/entropy"])
    close(losses["loss_critics"].detach(), updates["critic/loss"])
    # theirs has the temperature itself where there is its logarithm here
    log_alpha, alpha = model.temperature.log_alpha, updates["temperature/value"].squeeze()
    close(losses["loss_temperature"].detach() / log_alpha.detach(), updates["temperature/loss"].squeeze() / alpha)
    sum(losses[name] for name in loss.loss_names).backward()
    close(log_alpha.grad * alpha, reference["temperature/gradients/log_temp"].squeeze())
    for part in ("actor", "critics"):
        gradients = [(name, value.grad) for name, value in model.get_submodule(part).named_parameters()]
        all_close(part, gradients, under(reference, f"{PARTS[part]}/gradients"))


@torch.no_grad()
def test_the_target_distribution_is_that_of_the_reference(context, reference):
    loss, entries = loss_of(context), entries_of(reference, 0, "updates")
    unit, log_prob = loss._following(entries)
    both = [
        torch.cat([entries["observation"], entries["next", "observation"]]),
        torch.cat([entries["action"], unit]),
    ]
    following = loss.target_critics.log_probs(*both, statistics=Statistics.BATCH)[:, len(unit) :]
    close(loss._target(entries, following, log_prob), reference["updates/target_probs"])


def test_steps_bounds_and_targets_are_those_of_the_reference(context, reference):
    loss, model = loss_of(context), context.model
    optimizers = [optimizer_of(context, part) for part in ("actor", "critics", "temperature")]
    losses = loss(entries_of(reference, 0, "updates"))
    sum(losses[name] for name in loss.loss_names).backward()
    for optimizer in optimizers:
        optimizer.step()
    loss.target_updater.step()
    for part, theirs in PARTS.items():
        module = model.get_submodule(part)
        # batch norms of the targets never normalise by running statistics
        tensors = module.named_parameters() if part == "target_critics" else state(module)
        all_close(part, tensors, under(reference, f"{theirs}/after"))
    close(model.temperature.log_alpha.detach(), reference["temperature/after/log_temp"].squeeze())


def test_losses_in_turn_are_those_of_the_reference(context, reference):
    """Three updates at a fixed temperature, the actor's turn in two of them."""
    loss = loss_of(context, in_turn=True, temperature=reference["log_alpha"].exp().item())
    optimizers = {f"loss_{part}": optimizer_of(context, part) for part in ("actor", "critics")}
    for number in range(3):
        entries = entries_of(reference, number, f"turns/{number}")
        for name, theirs in (("loss_actor", "actor"), ("loss_critics", "critic")):
            if name == "loss_actor" and number == 1:
                continue
            value = loss(entries, (name,))[name]
            close(value.detach(), reference[f"turns/{number}/{theirs}/loss"])
            optimizers[name].zero_grad()
            value.backward()
            optimizers[name].step()
        loss.target_updater.step()
    for part, theirs in PARTS.items():
        module = context.model.get_submodule(part)
        tensors = module.named_parameters() if part == "target_critics" else state(module)
        all_close(part, tensors, under(reference, f"turns/{theirs}/after"))


def test_scales_of_rewards_are_those_of_the_reference(reference):
    rewards, ends = reference["rewards/rewards"], reference["rewards/ends"]
    # there a return starts over with the step that ends an episode, here with the step after it
    ends = torch.cat([ends[1:], ends[:1]])
    transform, scale = ReturnScale(ReturnScale.Config(gamma=GAMMA), Context.alone("test")), RewardScale()
    transform.fill(scale, 5.0)
    for reward, end, value in zip(rewards, ends, reference["rewards/scales"], strict=True):
        transform.batch(Batch({("next", "reward"): reward.view(2, 1, 1), ("next", "done"): end.view(2, 1, 1)}))
        close(scale.value, value)


class Batch(dict):
    """Entries `[env, time, 1]` with a size."""

    batch_size = (2, 1)
