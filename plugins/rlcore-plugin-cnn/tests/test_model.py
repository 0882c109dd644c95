"""The models: one body for actor and critic, run once for both; runs over images, kept as bytes up to the network."""

import pytest
import torch
from rlcore_plugin_cnn.bodies import NatureCNN
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.contracts import ModelContract

from rlcore.errors import ConfigError

SMALL = {"channels": [4], "kernels": [3], "strides": [2], "features": 8}
ENV = {"use": "testing:toy-pixels", "actions": "discrete"}
PPO = {
    "env": ENV,
    "model": {"use": "cnn:nature-cnn", **SMALL},
    "loss": {"use": "ppo"},
    "estimator": {"use": "ppo:gae"},
}
DQN = {
    "env": ENV,
    "model": {
        "use": "dqn:q-network",
        "encoder": "rlcore_plugin_cnn.bodies:NatureCNN",
        "encoder_kwargs": SMALL,
        "hidden": [8],
    },
    "loss": {"use": "dqn", "target_interval": 2},
    "estimator": [],
    "buffer": {"use": "replay", "capacity": 40, "minibatch_size": 8, "updates_per_batch": 2, "warmup_frames": 16},
}

SAC = {
    **DQN,
    "model": {**DQN["model"], "use": "sac:discrete-actor-critic"},
    "loss": {"use": "sac:discrete-sac"},
}


@pytest.fixture
def calls(monkeypatch):
    """How many rows each call of a body had."""
    rows = []
    forward = NatureCNN.forward

    def counted(self, observation):
        rows.append(len(observation))
        return forward(self, observation)

    monkeypatch.setattr(NatureCNN, "forward", counted)
    return rows


def test_one_body_is_run_once_for_actor_and_critic(calls):
    run = make_run(sections=PPO)
    calls.clear()
    run.trainer.train()
    assert calls.count(8) == run.trainer.progress.updates, "minibatches of 8"


def test_the_gradients_are_those_of_two_calls():
    context = ModelContract.of("cnn:nature-cnn", SMALL, {"env": ENV}).bench()
    model = context.model
    seen = torch.randint(0, 256, (5, 4, 6, 6), dtype=torch.uint8)
    found = []
    for outputs in (model.actor_and_critic(seen), (model.actor(seen), model.critic(seen))):
        model.zero_grad()
        (outputs[0].square().sum() + outputs[1].sum()).backward()
        found.append([*outputs, *(parameter.grad.clone() for parameter in model.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_separate_bodies_are_two():
    context = ModelContract.of("cnn:nature-cnn", {**SMALL, "share": False}, {"env": ENV}).bench()
    assert context.model.actor.network.encoder is not context.model.critic.encoder
    assert not hasattr(context.model, "actor_and_critic")


@pytest.mark.parametrize("sections", [PPO, DQN], ids=["ppo", "dqn"])
def test_images_are_bytes_up_to_the_network(sections, monkeypatch):
    dtypes = set()
    features = NatureCNN.forward
    monkeypatch.setattr(NatureCNN, "forward", lambda self, seen: features(self, seen))
    run = make_run(sections=sections)
    batch = run.trainer.collector.collect()
    assert batch["observation"].dtype == batch["next", "observation"].dtype == torch.uint8
    run.trainer.buffer.add(batch)
    for minibatch in run.trainer.buffer.minibatches(batch):
        dtypes.add(minibatch["observation"].dtype)
    assert dtypes == {torch.uint8}


def test_the_weights_of_discrete_sac_are_trained():
    run = make_run(sections=SAC)
    before = [parameter.detach().clone() for parameter in run.trainer.model.actor.network.encoder.parameters()]
    run.trainer.train()
    assert not any(map(torch.equal, before, run.trainer.model.actor.network.encoder.parameters()))


def test_arguments_without_an_encoder_are_refused():
    with pytest.raises(ConfigError, match=r"\[model\] encoder_kwargs: there is no encoder"):
        make_run(sections={"model": {"use": "mlp", "encoder_kwargs": {"features": 3}}})


@pytest.mark.slow
@pytest.mark.parametrize("sections", [{**PPO, "model": {**PPO["model"], "share": False}}, DQN], ids=["ppo", "dqn"])
def test_the_update_compiles(sections):
    run = make_run(sections={**sections, "learner": {"use": "gradient", "compile": True}})
    before = [parameter.detach().clone() for parameter in run.trainer.model.parameters()]
    run.trainer.train()
    assert not all(map(torch.equal, before, run.trainer.model.parameters()))
