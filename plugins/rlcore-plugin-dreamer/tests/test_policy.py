"""The policy: what its state holds, and that a loss infers from stored states what the policy did."""

import pytest
import torch
from rlcore_plugin_dreamer.categorical import sample
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.contracts.data import observations
from rlcore_plugin_testing.small_run import make_run
from rlcore_plugin_testing.toy import ToyEnv

from rlcore.types import FIRST, MASK, POLICY_STATE

from .sections import AROUND, NUMBERS, around


def built(sections):
    """Return a model whose weights are not small."""
    model = make_run(sections=sections).trainer.model
    env = {key: value for key, value in sections["env"].items() if key != "use"}
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    model.policy.refresh()
    return model, ToyEnv(ToyEnv.Config(**env)).spec


@pytest.mark.parametrize("sections", [AROUND, NUMBERS])
def test_a_state_holds_the_latents_and_the_action(sections):
    model, spec = built(sections)
    policy, rssm = model.policy, model.rssm
    seen, first = observations(spec, 4), torch.ones(4, dtype=torch.bool)
    noise = policy.draw(1, 4, torch.Generator().manual_seed(0))[0]
    with torch.inference_mode():
        action, _, state = policy.act(seen, noise, policy.initial_state(4), first)
    latent, encoded = model.carried.unpacked(state)
    assert torch.equal(model.actions.to_env(encoded), action)
    assert (latent.stoch.view(4, rssm.latents, rssm.classes).sum(-1) == 1).all()
    none, no_action = model.carried.unpacked(policy.initial_state(4))
    assert not torch.cat([none.deter, none.stoch, no_action], -1).any()


@pytest.mark.parametrize("sections", [AROUND, NUMBERS])
def test_a_sequence_that_is_observed_has_the_states_that_the_policy_had(sections):
    """With the same numbers for the latents, also over the beginning of an episode."""
    model, spec = built(sections)
    policy, rssm = model.policy, model.rssm
    steps, envs = 5, 3
    seen = observations(spec, steps, envs)
    first = torch.zeros(steps, envs, dtype=torch.bool)
    first[0], first[3, 1] = True, True
    noise = policy.draw(steps, envs, torch.Generator().manual_seed(0))
    states = [policy.initial_state(envs)]
    with torch.inference_mode():
        for time in range(steps):
            states.append(policy.act(seen[time], noise[time], states[-1], first[time])[2])
    begin, _ = model.carried.unpacked(states[1])  # a sequence from the second step on
    actions = torch.stack([model.carried.unpacked(state)[1] for state in states[1:-1]])
    with torch.no_grad():
        tokens = model.encoder(seen[1:])
        uniform = noise[1:, :, : rssm.latents]
        found = rssm.observe(tokens, actions, first[1:].unsqueeze(-1), begin, uniform).latent
    expected = [model.carried.unpacked(state)[0] for state in states[2:]]
    torch.testing.assert_close(found.deter, torch.stack([latent.deter for latent in expected]))
    assert torch.equal(found.stoch, torch.stack([latent.stoch for latent in expected]))


def test_actions_that_are_numbers_are_cut_to_their_bounds():
    model, spec = built(NUMBERS)
    encoded = torch.tensor([[-3.0] * model.actions.inputs, [0.0] * model.actions.inputs, [3.0] * model.actions.inputs])
    low, middle, high = model.actions.to_env(encoded)
    assert torch.equal(low, torch.tensor(spec.action_space.low))
    assert torch.equal(high, torch.tensor(spec.action_space.high))
    torch.testing.assert_close(middle, (low + high) / 2)
    assert model.actions.from_env(torch.stack([low, high])).unique().tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("sections", [AROUND, NUMBERS])
def test_a_loss_infers_the_states_with_which_the_next_sequences_begin(sections):
    """Those that the policy would have now, had it chosen the same actions."""
    trainer = make_run(sections=sections).trainer
    trainer.train()
    loss, model = trainer.learner._loss, trainer.model
    rows = trainer.buffer._draw(8)
    minibatch = {key: rows[key] for key in loss.reads}
    noise = loss.sample_noise(minibatch[MASK].numel(), torch.Generator().manual_seed(1))
    assert loss.stride == 3
    loss({**minibatch, **noise})
    uniform = noise["posterior_noise"].unflatten(0, minibatch[MASK].shape[:2])
    state = minibatch[POLICY_STATE]
    with torch.no_grad():
        model.policy.refresh()
        for time in range(loss.stride):
            first = minibatch[FIRST][time].squeeze(-1)
            deter, log_probs = model.policy._observed(minibatch["observation"][time], state, first)
            index = sample(log_probs.exp(), uniform[time])
            state = model.carried.packed(deter, index, model.actions.from_env(minibatch["action"][time]))
    whole = minibatch[MASK][: loss.stride].all(0).squeeze(-1)
    assert whole.any()
    torch.testing.assert_close(loss.inferred_states[whole], state[whole])


def test_states_in_the_buffer_follow_the_updates_unless_a_key_says_no():
    stored = {}
    for renews in (True, False):
        trainer = make_run(sections=around(loss={"renew_states": renews})).trainer
        trainer.train()
        stored[renews] = trainer.buffer.state_dict()["episodes"]["states"]
        assert (trainer.learner._loss.inferred_states is not None) == renews
    assert difference(stored[True], stored[False]) is not None
