"""A network of one's own before the MLPs: `encoder = "module:Name"`."""

from __future__ import annotations

import itertools
import sys

import gymnasium
import numpy as np
import pytest
import torch

from rlcore import ConfigError

NETS = """
import torch


class Encoder(torch.nn.Module):
    def __init__(self, space):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(space.shape[0], 6), torch.nn.LayerNorm(6))

    def forward(self, observation):
        return self.body(observation)


class Flat(Encoder):
    def forward(self, observation):
        return super().forward(observation).sum()


class Integers(Encoder):
    def forward(self, observation):
        return super().forward(observation).long()


class Fails(Encoder):
    def __init__(self, space):
        raise ValueError("no such layer")


class TooNarrow(torch.nn.Linear):
    def __init__(self, space):
        super().__init__(1, 2)


class Dropped(Encoder):
    def __init__(self, space):
        super().__init__(space)
        self.body.append(torch.nn.Dropout(0.5))


class Normed(Encoder):
    def __init__(self, space):
        super().__init__(space)
        self.body.append(torch.nn.BatchNorm1d(6))


class Noisy(Encoder):
    def forward(self, observation):
        features = super().forward(observation)
        return features + torch.rand_like(features) if self.training else features


class Always(Encoder):
    def forward(self, observation):
        return torch.nn.functional.dropout(super().forward(observation) + 1.0)


class Together(Encoder):
    def forward(self, observation):
        features = super().forward(observation) + 1.0
        return features / features.shape[0]


def function(space):
    return lambda observation: observation


NUMBER = 3
"""
_numbers = itertools.count()


@pytest.fixture
def nets(workdir):
    """The name of a module beside the config; each test has its own, as a process imports a name once."""
    name = f"nets_{next(_numbers)}"
    (workdir / f"{name}.py").write_text(NETS)
    yield name
    sys.modules.pop(name, None)


def model(nets, encoder="Encoder", **keys):
    return {"model": {"use": "mlp", "hidden": [], "encoder": f"{nets}:{encoder}", **keys}}


def weights(run):
    return [parameter.detach().clone() for parameter in run.trainer.model.parameters()]


def test_a_network_of_the_config_s_folder_trains_and_resumes_exactly(nets, build):
    whole = build(**model(nets))
    before = weights(whole)
    whole.trainer.train()
    assert not any(map(torch.equal, before, weights(whole)))
    first = build(write=True, **model(nets))
    first.trainer.stop_at = 64
    first.trainer.train()
    second = build(write=True, resume=True, **model(nets))
    second.trainer.train()
    assert all(map(torch.equal, weights(whole), weights(second)))


def test_its_weights_follow_from_the_seed_and_nothing_else(nets, build):
    state = torch.get_rng_state()
    first = build(**model(nets))
    assert torch.equal(state, torch.get_rng_state())
    torch.rand(3)
    second, third = build(**model(nets)), build(run={"seed": 2}, **model(nets))
    assert all(map(torch.equal, weights(first), weights(second)))
    assert not torch.equal(weights(first)[0], weights(third)[0])
    own = first.trainer.model
    assert not torch.equal(own.actor.network.encoder.body[1].weight, own.critic.encoder.body[1].weight)


def test_a_shared_encoder_is_one_and_is_trained_once(nets, build):
    run = build(**model(nets, share_encoder=True))
    own = run.trainer.model
    assert own.actor.network.encoder is own.critic.encoder
    (optimizer,) = run.trainer.learner.optimizers.values()
    found = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    assert len(found) == len(set(found))
    run.trainer.train()


@pytest.mark.slow
def test_a_shared_encoder_in_a_compiled_update_gives_the_weights_of_one_without(nets, build):
    runs = [build(learner={"compile": compiled}, **model(nets, share_encoder=True)) for compiled in (False, True)]
    for run in runs:
        run.trainer.train()
    for one, other in zip(*map(weights, runs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_the_policy_acts_as_the_modules_say(nets, build):
    own = build(**model(nets, hidden=[5])).trainer.model
    seen = torch.randn(7, 4)
    torch.testing.assert_close(own.actor.raw()(seen), own.actor(seen))
    torch.testing.assert_close(own.critic(seen.view(7, 1, 4)), own.critic(seen).view(7, 1, 1))


def test_a_q_network_has_an_encoder_too(nets, write_config):
    import rlcore

    path = write_config(
        model={"use": "dqn:q-network", "encoder": f"{nets}:Encoder"},
        loss={"use": "dqn"},
        estimator=None,
        buffer={"use": "replay", "minibatch_size": 16, "warmup_frames": 32},
    )
    path.write_text(path.read_text().replace("epochs = 2\n", ""))
    run = rlcore.build(rlcore.load_config(path), write=False)
    before = weights(run)
    run.trainer.train()
    assert not torch.equal(before[0], weights(run)[0])
    assert run.trainer.model.q_values.encoder is not run.trainer.model.target_q_values.encoder


@pytest.mark.parametrize("encoder", ["Dropped", "Normed", "Noisy"])
def test_who_acts_is_in_evaluation_mode_and_losses_are_computed_in_training_mode(encoder, nets, build, monkeypatch):
    run = build(**model(nets, encoder), evaluator={"use": "episodes", "episodes": 4})
    own, learner = run.trainer.model, run.trainer.learner
    layers = learner._layers
    assert len(layers) == 2, "that of the actor, and that of the critic"
    modes = {"loss": set(), "elsewhere": set()}
    take_step, where = learner.take_step, ["elsewhere"]

    def noting(minibatch):
        where[0] = "loss"
        try:
            return take_step(minibatch)
        finally:
            where[0] = "elsewhere"

    monkeypatch.setattr(learner, "take_step", noting)
    for layer in layers:
        layer.register_forward_pre_hook(lambda layer, given: modes[where[0]].add(layer.training))
    run.trainer.train()
    assert modes == {"loss": {True}, "elsewhere": {False}}
    own.policy.refresh()
    seen = torch.randn(8, 4)
    together, again = own.policy.mode(seen), own.policy.mode(seen)
    alone = torch.cat([own.policy.mode(row[None]) for row in seen])
    assert torch.equal(together, again)
    assert torch.equal(together, alone)


@pytest.mark.parametrize("encoder", ["Dropped", "Normed"])
def test_layers_with_modes_train_and_resume_exactly(encoder, nets, build):
    whole, first = build(**model(nets, encoder)), build(write=True, **model(nets, encoder))
    torch.manual_seed(1)  # dropout samples from torch's own generator
    whole.trainer.train()
    torch.manual_seed(1)
    first.trainer.stop_at = 64
    first.trainer.train()
    second = build(write=True, resume=True, **model(nets, encoder))
    second.trainer.train()
    states = [run.trainer.model.state_dict() for run in (whole, second)]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


def test_a_target_network_stays_in_evaluation_mode(nets, write_config):
    import rlcore

    path = write_config(
        model={"use": "dqn:q-network", "encoder": f"{nets}:Dropped"},
        loss={"use": "dqn"},
        estimator=None,
        buffer={"use": "replay", "minibatch_size": 16, "warmup_frames": 32},
    )
    path.write_text(path.read_text().replace("epochs = 2\n", ""))
    trainer = rlcore.build(rlcore.load_config(path), write=False).trainer
    dropouts = [module for module in trainer.model.q_values.modules() if isinstance(module, torch.nn.Dropout)]
    assert list(trainer.learner._layers) == dropouts


def test_a_model_without_such_layers_has_none_to_switch(nets, build):
    assert build(**model(nets)).trainer.learner._layers == ()


class Counting(gymnasium.Env):
    """Observations are integers."""

    observation_space = gymnasium.spaces.Box(0, 255, (4,), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return self._seen(), {}

    def step(self, action):
        self._steps += 1
        return self._seen(), 1.0, self._steps >= 10, False, {}

    def _seen(self):
        return self.np_random.integers(0, 255, 4, dtype=np.uint8)


@pytest.mark.parametrize("encoder", [None, "Encoder"])
def test_integer_observations_train(encoder, nets, build, monkeypatch):
    monkeypatch.setitem(gymnasium.registry, "Counting-v0", gymnasium.envs.registration.EnvSpec("Counting-v0", Counting))
    sections = model(nets) if encoder else {}
    run = build(env={"use": "gymnasium", "id": "Counting-v0"}, **sections)
    before = weights(run)
    run.trainer.train()
    assert not torch.equal(before[0], weights(run)[0])


@pytest.fixture
def torch_as_it_was():
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)


@pytest.mark.parametrize(
    "call", ["set_default_dtype(torch.float64)", "set_default_device('meta')", "set_grad_enabled(False)"]
)
@pytest.mark.usefixtures("torch_as_it_was")
def test_a_module_that_changes_what_torch_makes_is_refused(call, nets, build, workdir):
    (workdir / f"{nets}.py").write_text(NETS.replace("import torch\n", f"import torch\n\ntorch.{call}\n"))
    name = call.partition("(")[0]
    with pytest.raises(ConfigError, match=rf"while model .* was built.* called torch\.{name}\("):
        build(**model(nets))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("{nets}", "expected 'module:Name'"),
        ("{nets}:Encodr", "has no 'Encodr'; did you mean 'Encoder'"),
        ("absent_module_xyz:Encoder", "there is no module 'absent_module_xyz'; put its file beside the config"),
        ("{nets}:NUMBER", "a int cannot be called"),
        ("{nets}:function", "returned function, which is no torch.nn.Module"),
        ("{nets}:Fails", "called with the space, raised ValueError: no such layer"),
        ("{nets}:TooNarrow", r"fails on observations \[2, 4\] of float32: RuntimeError"),
        ("{nets}:Flat", r"into \[\] of torch.float32; expected \[2, features\]"),
        ("{nets}:Always", "makes other features of an observation in evaluation mode when it is called again"),
        ("{nets}:Together", "or for it alone; let dropout follow"),
        ("{nets}:Integers", r"into \[2, 6\] of torch.int64; expected"),
    ],
)
def test_what_is_no_encoder_is_refused_before_the_first_frame(place, message, nets, build):
    with pytest.raises(ConfigError, match=message):
        build(model={"use": "mlp", "encoder": place.format(nets=nets)})
