"""SAC and TD3 over sequences: beside plain loops over sequences and steps of torch's own cells, and whole runs."""

import math

import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_run, make_trainer
from torch import nn

from rlcore.errors import ConfigError
from rlcore.types import MASK

from .sections import AROUND, DETERMINISTIC_SEQUENCES, SEQUENCES

GAMMA = 0.9
BURN_IN, LENGTH = SEQUENCES["buffer"]["burn_in"], SEQUENCES["buffer"]["sequence_length"]


def sampled(sections, buffer=None, **loss):
    """Return loss, model, and sequences with noise; targets are not what they follow, and values spread."""
    sections = {
        **sections,
        "loss": {**sections["loss"], "gamma": GAMMA, **loss},
        "buffer": {**sections["buffer"], **(buffer or {})},
    }
    trainer = make_trainer("run.total_frames=160", sections=sections)
    trainer.train()
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    samples = trainer.buffer.sample(12)
    entries = {key: samples[key] for key in samples.keys(include_nested=True, leaves_only=True)}
    loss = trainer.learner._loss
    noise = loss.sample_noise(entries[MASK].numel(), torch.Generator().manual_seed(7))
    return loss, trainer.model, {**entries, **noise}


class Plain:
    """A model in double precision, made of torch's own layers; what it returns has gradients to `weights`."""

    def __init__(self, model):
        self.weights = {name: value.detach().double().requires_grad_() for name, value in model.named_parameters()}
        self.is_lstm = model.actor.body.cell.num_states == 2
        self.split = model.actor.body.state_size
        self.box = model.box

    def known(self, name, entries):
        """Return what a part knows in each row, `[time, sequence, size]`, one step after another."""
        weights = {key.removeprefix(f"{name}."): value for key, value in self.weights.items()}
        own = slice(0, self.split) if "actor" in name else slice(self.split, None)
        count = entries["policy_state"].shape[0]
        state, found = entries["policy_state"].double()[:, own], []
        for row, seen in enumerate(entries["observation"].double()):
            if row == BURN_IN:
                state = state.detach()
            states = []
            for sequence in range(count):
                before = state[sequence] * 0 if entries["first"][row, sequence] else state[sequence]
                linear = seen[sequence] @ weights["body.entrance.network.layers.0.weight"].T
                entered = torch.relu(linear + weights["body.entrance.network.layers.0.bias"])
                states.append(self._step(weights, entered, before))
            state = torch.stack(states)
            found.append(state[:, : weights["body.cell.weight_hh_l0"].shape[1]])
        return torch.stack(found)

    def _step(self, weights, entered, before):
        kind = nn.LSTMCell if self.is_lstm else nn.GRUCell
        hidden = weights["body.cell.weight_hh_l0"].shape[1]
        cell = kind(len(entered), hidden, dtype=torch.float64)
        own = {key: weights[f"body.cell.{key}_l0"] for key in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        state = tuple(part[None] for part in before.split(hidden)) if self.is_lstm else before[None]
        following = torch.func.functional_call(cell, own, (entered[None], state))
        return torch.cat(following, -1)[0] if self.is_lstm else following[0]

    def outputs(self, known):
        """Return what the head of the actor makes of what it knows."""
        return self._actor("actor", known)

    def _actor(self, name, known):
        for layer in (0, 1):
            weight, bias = (self.weights[f"{name}.head.network.layers.{layer}.{key}"] for key in ("weight", "bias"))
            known = (torch.relu(known) if layer else known) @ weight.T + bias
        return known

    def values(self, name, known, unit, frozen=False):
        """Return the values of each critic, [critic]."""
        found = []
        for critic in range(2):
            hidden = torch.cat([known, unit])
            for layer in (0, 1):
                weight, bias = (self.weights[f"{name}.head.layers.{layer}.{key}"][critic] for key in ("weight", "bias"))
                weight, bias = (weight.detach(), bias.detach()) if frozen else (weight, bias)
                hidden = (torch.relu(hidden) if layer else hidden) @ weight + bias[0]
            found.append(hidden[0])
        return torch.stack(found)

    def unit(self, action):
        low, high = self.box.low.double(), self.box.high.double()
        return 2 * (action.double() - low) / (high - low) - 1


def soft_action(outputs, noise):
    """Return an action scaled to [-1, 1] and its log-density."""
    mean, log_std = outputs.split(2)
    log_std = log_std.clamp(-20, 2)
    inner = mean + log_std.exp() * noise
    normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
    return inner.tanh(), (normal - torch.log(1 - inner.tanh() ** 2)).sum()


def trained_steps(entries):
    return [tuple(place) for place in entries[MASK].squeeze(-1).nonzero().tolist()]


def flat(entries, row, sequence):
    """Return where the noise of a step lies: of each step of the minibatch, the first time first."""
    return row * entries["policy_state"].shape[0] + sequence


def target_of(entries, place, following_value):
    """Return `r + gamma^n V(s')` of one step."""
    going = not bool(entries["next", "terminated"][place])
    steps = int(entries["steps_to_next_obs"][place])
    return float(entries["next", "reward"][place]) + going * GAMMA**steps * float(following_value.detach())


def expected_of_sac(model, entries):
    """Return losses, and errors of the critics, from a loop over steps."""
    plain, temperature = Plain(model), math.exp(float(model.temperature.log_alpha.detach()))
    actor, critics, targets = (plain.known(name, entries) for name in ("actor", "critics", "target_critics"))
    noise, following_noise = entries["noise"].double(), entries["next", "noise"].double()
    of_critics, of_actor, entropies, errors = [], [], [], {}
    for row, sequence in trained_steps(entries):
        here, ahead = (row, sequence), (row + int(entries["steps_to_next_obs"][row, sequence]), sequence)
        assert ahead[0] == int(entries["bootstrap_row"][here])
        number = flat(entries, row, sequence)
        unit, log_prob = soft_action(plain.outputs(actor[ahead]), following_noise[number])
        value = plain.values("target_critics", targets[ahead], unit).min() - temperature * log_prob
        found = plain.values("critics", critics[here], plain.unit(entries["action"][here]))
        error = target_of(entries, here, value) - found
        errors[here] = float(error.detach().abs().max())
        of_critics.append(0.5 * float(entries["priority_weight"][here]) * (error**2).sum())
        unit, log_prob = soft_action(plain.outputs(actor[here]), noise[number])
        value = plain.values("critics", critics[here].detach(), unit, frozen=True).min()
        of_actor.append(temperature * log_prob - value)
        entropies.append(-float(log_prob))
    losses = {"loss_critics": torch.stack(of_critics).mean(), "loss_actor": torch.stack(of_actor).mean()}
    return plain, losses, sum(entropies) / len(entropies), errors


def check(loss, model, entries, plain, expected, errors):
    """Compare losses, their gradients and the errors of the critics."""
    found = loss(entries)
    for name, value in expected.items():
        torch.testing.assert_close(found[name].double(), value.double(), rtol=1e-4, atol=1e-5)
        own = {key: parameter for key, parameter in model.named_parameters() if parameter.requires_grad}
        arguments = {"retain_graph": True, "allow_unused": True, "materialize_grads": True}
        gradients = torch.autograd.grad(found[name], list(own.values()), **arguments)
        others = torch.autograd.grad(value, [plain.weights[key] for key in own], **arguments)
        for key, one, other in zip(own, gradients, others, strict=True):
            torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-4, msg=lambda text, key=key: key + text)
    td_error = torch.zeros(entries[MASK].shape, dtype=torch.float64)
    for place, error in errors.items():
        td_error[place] = error
    torch.testing.assert_close(found["td_error"].double(), td_error, rtol=1e-3, atol=1e-4)
    begins = entries["first"][: BURN_IN + 1].any(0)
    assert begins.any()
    assert not begins.all(), "some sequences begin with a stored state"
    assert not entries[MASK][BURN_IN : BURN_IN + LENGTH].all(), "some have padding"
    assert len({int(steps) for steps in entries["steps_to_next_obs"][entries[MASK]]}) > 1
    return found


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_sac_is_that_of_a_loop_over_sequences_and_steps(cell):
    loss, model, entries = sampled({**SEQUENCES, "model": {**SEQUENCES["model"], "cell": cell}})
    plain, expected, entropy, errors = expected_of_sac(model, entries)
    found = check(loss, model, entries, plain, expected, errors)
    log_alpha, target = float(model.temperature.log_alpha.detach()), -2.0
    assert float(found["entropy"]) == pytest.approx(entropy, rel=1e-4)
    assert float(found["loss_temperature"]) == pytest.approx(log_alpha * (entropy - target), rel=1e-4)
    assert entries["priority_weight"].unique().numel() > 2


def test_td3_is_that_of_a_loop_over_sequences_and_steps():
    loss, model, entries = sampled(DETERMINISTIC_SEQUENCES, target_noise=0.3, target_noise_clip=0.4)
    plain = Plain(model)
    names = ("actor", "target_actor", "critics", "target_critics")
    actor, target_actor, critics, targets = (plain.known(name, entries) for name in names)
    of_critics, of_actor, errors = [], [], {}
    for row, sequence in trained_steps(entries):
        here, ahead = (row, sequence), (int(entries["bootstrap_row"][row, sequence]), sequence)
        noise = (0.3 * entries["next", "noise"][flat(entries, row, sequence)].double()).clamp(-0.4, 0.4)
        unit = (plain._actor("target_actor", target_actor[ahead]).tanh() + noise).clamp(-1, 1)
        value = plain.values("target_critics", targets[ahead], unit).min()
        error = target_of(entries, here, value) - plain.values(
            "critics", critics[here], plain.unit(entries["action"][here])
        )
        errors[here] = float(error.detach().abs().max())
        of_critics.append(float(entries["priority_weight"][here]) * (error**2).sum())
        unit = plain.outputs(actor[here]).tanh()
        of_actor.append(-plain.values("critics", critics[here].detach(), unit, frozen=True)[0])
    expected = {"loss_critics": torch.stack(of_critics).mean(), "loss_actor": torch.stack(of_actor).mean()}
    check(loss, model, entries, plain, expected, errors)


@pytest.mark.parametrize("sections", [SEQUENCES, DETERMINISTIC_SEQUENCES], ids=["sac", "td3"])
def test_padding_counts_for_nothing(sections):
    loss, _, entries = sampled(sections)
    whole = loss(entries)
    ends = entries["observation"].shape[0] - 1 - entries[MASK].flip(0).int().argmax(0)  # the last trained row
    reach = ends + entries["steps_to_next_obs"].gather(0, ends.unsqueeze(0))[0]
    behind = torch.arange(len(entries["observation"])).reshape(-1, 1, 1) > reach
    assert behind.any()
    entries["observation"] = torch.where(behind, 99.0, entries["observation"])
    entries["next", "reward"] = torch.where(entries[MASK], entries["next", "reward"], 99.0)
    entries["action"] = torch.where(entries[MASK], entries["action"], 0.5)
    padded = loss(entries)
    assert all(torch.equal(value, padded[name]) for name, value in whole.items())


@pytest.mark.parametrize("sections", [SEQUENCES, DETERMINISTIC_SEQUENCES], ids=["sac", "td3"])
def test_a_resumed_run_goes_on_in_the_middle_of_episodes_and_sequences(sections, tmp_path):
    sections = {**sections, "model": {**sections["model"], "random_frames": 40}}
    assert check_resumed(tmp_path, "run.total_frames=96", sections=sections).progress.updates > 4


def test_losses_side_by_side_have_the_same_bits():
    found = []
    for parallel in ("false", "true"):
        trainer = make_trainer(f"learner.parallel={parallel}", "learner.max_grad_norm=0.5", sections=SEQUENCES)
        trainer.train()
        found.append([parameter.detach().clone() for parameter in trainer.model.parameters()])
        assert trainer.progress.updates > 2
    assert all(map(torch.equal, *found))


def test_stored_states_are_those_of_actor_and_critics():
    """What a sequence begins with is what both remembered then: values along it are those of single steps."""
    trainer = make_trainer("run.total_frames=64", "buffer.warmup_frames=1000", sections=SEQUENCES)
    model, batches = trainer.model, []
    for _ in trainer:
        batches.append(trainer.collector.collect().clone())
        trainer.buffer.add(batches[-1])
    samples = trainer.buffer.sample(40)
    acted = {}
    for batch in batches:
        for step in batch.reshape(-1):
            inputs = [step[key].unsqueeze(0) for key in ("observation", "policy_state", "first")]
            with torch.no_grad():
                known = [part.known(*inputs)[0] for part in (model.actor, model.critics)]
            acted[tuple(step["observation"].tolist())] = torch.cat(known)
    inputs = [samples[key] for key in ("observation", "policy_state", "first")]
    with torch.no_grad():
        along = torch.cat([part.known(*inputs) for part in (model.actor, model.critics)], -1)
    compared = 0
    for row, sequence in samples[MASK].squeeze(-1).nonzero().tolist():
        seen = tuple(samples["observation"][row, sequence].tolist())
        if seen in acted:
            compared += 1
            torch.testing.assert_close(along[row, sequence], acted[seen], rtol=0, atol=1e-5)
    assert compared > 20


@pytest.mark.slow
@pytest.mark.parametrize("sections", [SEQUENCES, DETERMINISTIC_SEQUENCES], ids=["sac", "td3"])
def test_a_compiled_update_trains_as_an_eager_one_does(sections):
    # few rows, as compiling takes as much longer as sequences are long
    short = {"sequence_length": 2, "burn_in": 1, "overlap": 0, "n_steps": 1}
    sections, found = {**sections, "buffer": {**sections["buffer"], **short}}, []
    for compiled in ("false", "true"):
        trainer = make_trainer(f"learner.compile={compiled}", sections=sections)
        trainer.train()
        assert trainer.progress.updates > 2
        found.append([parameter.detach().clone() for parameter in trainer.model.parameters()])
    for eager, one in zip(*found, strict=True):
        torch.testing.assert_close(one, eager, rtol=1e-3, atol=1e-4)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match=r"for sac, td3 and ddpg the model sac:recurrent-actor-critic"):
        make_run(sections={**SEQUENCES, "model": AROUND["model"]})
    with pytest.raises(ConfigError, match=r'SACLoss takes sequences; set use = "replay:sequences"'):
        make_run(sections={**SEQUENCES, "buffer": {"use": "replay"}})
    with pytest.raises(ConfigError, match="bootstrap_row"):
        make_run(sections={**SEQUENCES, "buffer": {"use": "rollout-sequences", "sequence_length": 4}})
    buffer = {"use": "rollout-sequences", "sequence_length": 4, "minibatch_size": 8}
    with pytest.raises(ConfigError, match="CQLLoss does not know policies with a state"):
        make_run(sections={**SEQUENCES, "loss": {"use": "offline:cql"}, "buffer": buffer})
