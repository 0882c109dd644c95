"""The policy: what its state holds, and that a loss infers from stored states what the policy did."""

import pytest
import torch
from rlcore_plugin_testing.contracts.data import observations
from rlcore_plugin_testing.small_run import make_run
from rlcore_plugin_testing.toy import ToyEnv

from .sections import AROUND, NUMBERS


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
