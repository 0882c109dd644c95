"""A memory for each part: whose state is whose, what trains which, and runs with two optimizers that stop and go on."""

import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_trainer

from rlcore import Factory

SMALL = {"use": "recurrent:lstm", "size": 6, "encoder_hidden": [5], "shared": False}
SECTIONS = {
    "env": {"use": "testing:toy", "actions": "discrete"},
    "model": SMALL,
    "estimator": {"use": "ppo:gae"},
    "loss": {"use": "ppo"},
    "buffer": {"use": "rollout-sequences", "minibatch_size": 8, "sequence_length": 4},
}
TWO = [
    {"use": "adam", "name": "actor", "parameters": ["actor"], "losses": ["loss_objective", "loss_entropy"]},
    {"use": "adam", "name": "critic", "lr": 1e-2, "parameters": ["critic"], "losses": ["loss_critic"]},
]
KINDS = pytest.mark.parametrize("kind", ["lstm", "gru"])


def weights(trainer):
    return {name: parameter.detach().clone() for name, parameter in trainer.model.named_parameters()}


@KINDS
def test_each_part_has_its_share_of_the_carried_state(kind):
    make = Factory(total_frames=96, seed=3)
    env = make.env("testing:toy", episode_lengths=[7, 4])
    model = make.model(f"recurrent:{kind}", size=4, layers=2, encoder_hidden=[3], shared=False)
    assert not {id(one) for one in model.actor.parameters()} & {id(one) for one in model.critic.parameters()}
    assert not hasattr(model, "actor_and_critic")
    half = model.actor.body.state_size
    assert model.policy.initial_state(5).shape == (5, 2 * half)
    batch = env.rollout(12, model.policy, break_when_any_done=False)
    seen, first = (batch[key].transpose(0, 1) for key in ("observation", "first"))
    states = batch["policy_state"][:, 0]
    for part, own in ((model.actor, slice(0, half)), (model.critic, slice(half, None))):
        found = part.body.after(seen, states[:, own], first)
        torch.testing.assert_close(found, batch["next", "policy_state"][:, -1, own])
        alone = part.head(part.body(seen, states[:, own], first))
        torch.testing.assert_close(part(seen, states, first), alone, rtol=0, atol=0)
        carried = part.after(seen, states, first)
        torch.testing.assert_close(carried[:, own], found, rtol=0, atol=0)
        others = torch.ones(2 * half, dtype=torch.bool)
        others[own] = False
        assert torch.equal(carried[:, others], states[:, others])
    # the critic's memory has another entrance, so that it remembers something else
    assert not torch.allclose(batch["policy_state"][:, 5, :half], batch["policy_state"][:, 5, half:])


def test_a_shared_memory_is_what_it_was_without_the_key():
    shared = make_trainer(sections={**SECTIONS, "model": {**SMALL, "shared": True}})
    default = make_trainer(sections={**SECTIONS, "model": {key: SMALL[key] for key in SMALL if key != "shared"}})
    for trainer in (shared, default):
        trainer.train()
    assert all(torch.equal(value, weights(default)[name]) for name, value in weights(shared).items())
    assert shared.model.policy.initial_state(1).shape == (1, 12)


@pytest.mark.parametrize("loss", ["ppo", "ppo:a2c"])
def test_two_optimizers_move_a_part_each(loss):
    """In the updates of one batch, whose advantages are taken before, the rate of the critic moves no actor."""
    after = []
    for rate in (1e-2, 1e-3):
        optimizers = [TWO[0], {**TWO[1], "lr": rate}]
        trainer = make_trainer(
            "run.total_frames=16", sections={**SECTIONS, "loss": {"use": loss}, "optimizer": optimizers}
        )
        before = weights(trainer)
        trainer.train()
        assert trainer.progress.updates >= 2
        after.append(weights(trainer))
        assert not any(torch.equal(value, before[name]) for name, value in after[-1].items())
    same = {name: torch.equal(value, after[1][name]) for name, value in after[0].items()}
    assert same == {name: name.startswith("actor") for name in same}


@pytest.mark.parametrize("optimizers", [[{"use": "adam"}], TWO], ids=["one", "two"])
@KINDS
def test_losses_side_by_side_have_the_same_bits(kind, optimizers):
    found = []
    for parallel in (False, True):
        sections = {**SECTIONS, "model": {**SMALL, "use": f"recurrent:{kind}"}, "optimizer": optimizers}
        trainer = make_trainer(
            f"learner.parallel={str(parallel).lower()}", "learner.max_grad_norm=0.5", sections=sections
        )
        trainer.train()
        found.append(weights(trainer))
    assert all(torch.equal(value, found[1][name]) for name, value in found[0].items())


def test_a_shared_memory_is_refused_side_by_side():
    trainer = make_trainer("learner.parallel=true", sections={**SECTIONS, "model": {**SMALL, "shared": True}})
    with pytest.raises(Exception, match="'loss_objective' and 'loss_critic' share 6 parameters"):
        trainer.train()


@pytest.mark.parametrize("loss", ["ppo", "ppo:a2c"])
def test_a_resumed_run_goes_on_in_the_middle_of_episodes(loss, tmp_path):
    sections = {**SECTIONS, "loss": {"use": loss}, "optimizer": TWO, "checkpoint": {"use": "torch", "every": 16}}
    check_resumed(tmp_path, sections=sections)


@pytest.mark.slow
def test_a_compiled_update_trains_as_an_eager_one_does():
    """With an LSTM and a shared body in `test_cells.py`."""
    found = []
    for compiled in ("false", "true"):
        sections = {**SECTIONS, "model": {**SMALL, "use": "recurrent:gru"}, "optimizer": TWO}
        trainer = make_trainer(f"learner.compile={compiled}", sections=sections)
        trainer.train()
        found.append(weights(trainer))
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-4, atol=1e-5)
