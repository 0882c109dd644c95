"""A network for each leaf: what it makes of observations, and what a config may not say."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_mlp.by_leaf import LeafEncoder, by_leaf
from rlcore_plugin_testing import make_run

from rlcore.envs import Packed
from rlcore.errors import ConfigError

SPACE = Packed(
    {
        "place": gymnasium.spaces.Discrete(3, start=2),
        "a.speed": gymnasium.spaces.Box(-1, 1, (2, 2), np.float32),
        "action_mask": gymnasium.spaces.MultiBinary(2),
    },
    choices=[2],
)
DICT = {"use": "testing:toy-dict"}


class Doubled(torch.nn.Module):
    """Flattens a leaf, times two, beside its sum."""

    def __init__(self, space, factor=2):
        super().__init__()
        self.factor = factor

    def forward(self, leaf):
        flat = leaf.flatten(1)
        return torch.cat([self.factor * flat, flat.sum(1, keepdim=True)], 1)


HERE = f"{__name__}:Doubled"


def encoder(**encoders):
    named = {name.replace("_", "."): LeafEncoder.model_validate(keys) for name, keys in encoders.items()}
    return by_leaf(named, SPACE, 3, "tanh", "orthogonal")


def rows():
    SPACE.seed(0)
    packed = torch.from_numpy(np.stack([SPACE.sample() for _ in range(4)]))
    return packed, SPACE.tensors(packed)


def test_features_of_the_leaves_stand_side_by_side():
    network, features = encoder(a_speed={"encoder": HERE, "factor": 3}, place={"hidden": [5]})
    packed, leaves = rows()
    found = network(packed)
    flat = leaves["a.speed"].flatten(1)
    assert found.shape == (4, features) == (4, 5 + 5)
    linear = next(layer for layer in network.modules() if isinstance(layer, torch.nn.Linear))
    one_hot = torch.nn.functional.one_hot(leaves["place"] - 2, 3).float()
    torch.testing.assert_close(found[:, :5], torch.tanh(linear(one_hot)))
    torch.testing.assert_close(found[:, 5:], torch.cat([3 * flat, flat.sum(1, keepdim=True)], 1))


def test_a_leaf_without_a_network_is_flattened():
    network, features = encoder(a_speed={"hidden": [4]})
    packed, leaves = rows()
    assert features == 3 + 4
    assert torch.equal(network(packed)[:, :3].argmax(1), leaves["place"] - 2)


def test_the_networks_are_one_graph_for_the_compiler():
    network, _ = encoder(a_speed={"hidden": [4]}, place={"hidden": [2]})
    packed, _ = rows()
    compiled = torch.compile(network, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(packed), network(packed))


MODELS = {
    "dqn": ({"use": "dqn:q-network", "duelling": True}, {"use": "dqn"}),
    "sac": ({"use": "sac:actor-critic"}, {"use": "sac"}),
    "discrete-sac": ({"use": "sac:discrete-actor-critic"}, {"use": "sac:discrete-sac"}),
}


@pytest.mark.parametrize("name", MODELS)
def test_losses_of_other_plugins_train_the_network_of_each_leaf(name):
    model, loss = MODELS[name]
    encoders = {"frame": {"hidden": [4]}, "state": {"hidden": [3]}}
    sections = {
        "env": {**DICT, "actions": "bounded" if name == "sac" else "discrete"},
        "model": {**model, "hidden": [8], "encoders": encoders},
        "loss": loss,
        "estimator": [],
        "buffer": {"use": "replay", "capacity": 64, "minibatch_size": 8, "warmup_frames": 16},
    }
    trainer = make_run(sections=sections).trainer
    network = trainer.model
    state = network.state_dict()
    before = {key: state[key].clone() for key in state if ".networks." in key and "target" not in key}
    assert len(before) >= 4
    trainer.train()
    assert [key for key, weight in before.items() if torch.equal(state[key], weight)] == []


@pytest.mark.parametrize(
    ("env", "keys", "message"),
    [
        (DICT, {"encoders": {"fram": {"hidden": [4]}}}, r"encoders.fram: there is no such leaf.*mean 'frame'"),
        (DICT, {"encoders": {"action_mask": {"hidden": [4]}}}, r"encoders.action_mask: there is no such leaf"),
        (DICT, {"encoders": {"frame": {"encoder": "torch.nn:Line"}}}, r"\[model\] encoders.frame = 'torch.nn:Line'"),
        (DICT, {"encoders": {"frame": {}}}, r"encoders.frame: name one network"),
        (DICT, {"encoders": {"frame": {"hidden": [4], "width": 3}}}, r"encoders.frame: .*leave out width = ..."),
        (DICT, {"encoders": {"frame": {"hidden": [4]}}, "encoder": HERE}, "there is an encoder of all leaves too"),
        ({"use": "testing:toy"}, {"encoders": {"frame": {"hidden": [4]}}}, r"encoders: observations are one array"),
    ],
)
def test_what_a_config_may_not_say(env, keys, message):
    with pytest.raises(ConfigError, match=message):
        make_run(sections={"env": env, "model": {"use": "mlp", **keys}})
