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
        ("{nets}:Integers", r"into \[2, 6\] of torch.int64; expected"),
    ],
)
def test_what_is_no_encoder_is_refused_before_the_first_frame(place, message, nets, build):
    with pytest.raises(ConfigError, match=message):
        build(model={"use": "mlp", "encoder": place.format(nets=nets)})
