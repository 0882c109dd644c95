"""The contracts of the plugin, of its loss and of its model, and what both compute."""

import pytest
import torch
from rlcore_plugin_testing.contracts import LossContract, ModelContract, PluginContract
from rlcore_plugin_testing.contracts.data import minibatch
from rlcore_plugin_testing.small_run import make_run

from rlcore.errors import ConfigError

ACTIONS = {"env": {"use": "testing:toy", "actions": "discrete"}}
MINATAR = {"use": "torch-envs", "id": "MinAtar/Breakout-v1", "max_episode_steps": 20}
MODEL = {"model": {"use": "pqn:normed-q-network", "hidden": [8]}, "estimator": {"use": "ppo:gae"}}


class TestPlugin(PluginContract):
    plugin = "pqn"


class TestLoss(LossContract):
    use = "pqn"
    around = {**ACTIONS, **MODEL}

    def test_it_is_half_the_squared_error_of_the_actions_taken(self):
        context = self.bench()
        entries, loss = minibatch(context), self.make(context)
        values = context.model.q_values(entries["observation"])
        taken = torch.stack([row[action] for row, action in zip(values, entries["action"].tolist(), strict=True)])
        expected = sum((taken - entries["value_target"][:, 0]) ** 2) / 2 / len(taken)
        assert loss(entries)["loss_q"].item() == pytest.approx(expected.item(), rel=1e-5)


class TestModel(ModelContract):
    use = "pqn:normed-q-network"
    config = {"hidden": [8]}
    around = {**ACTIONS, "loss": {"use": "pqn"}, "estimator": {"use": "ppo:gae"}}

    @pytest.mark.parametrize("normalise_input", [False, True])
    def test_each_hidden_layer_has_a_norm(self, normalise_input):
        model = self.make(self.bench(), hidden=[8, 6], normalise_input=normalise_input)
        kinds = [type(layer).__name__ for layer in model.q_values.layers]
        hidden = ["Linear", "LayerNorm", "ReLU"]
        assert kinds == [*(["LayerNorm"] if normalise_input else []), *hidden, *hidden, "Linear"]


SEQUENCES = {"use": "rollout-sequences", "sequence_length": 4, "minibatch_size": 8}


class TestRecurrentModel(ModelContract):
    use = "pqn:recurrent-normed-q-network"
    config = {"size": 8, "encoder_hidden": [8], "hidden": [6]}
    around = {**TestModel.around, "buffer": SEQUENCES}

    @pytest.mark.parametrize("cell", ["lstm", "gru"])
    def test_layers_before_and_behind_the_memory_have_norms(self, cell):
        q_values = self.make(self.bench(), cell=cell).q_values
        hidden = ["Linear", "LayerNorm", "ReLU"]
        before = q_values.body.entrance._bare.encoder.layers
        assert [type(layer).__name__ for layer in before] == hidden
        assert type(q_values.body.cell).__name__ == cell.upper()
        assert [type(layer).__name__ for layer in q_values.head.layers] == [*hidden, "Linear"]


class TestLossWithMemory(LossContract):
    use = "pqn"
    around = {**ACTIONS, **MODEL, "model": {"use": "pqn:recurrent-normed-q-network", "size": 8}, "buffer": SEQUENCES}


class TestModelOfImages(ModelContract):
    use = "pqn:normed-q-network"
    config = {"hidden": [8], "channels": [4]}
    around = {
        **TestModel.around,
        "env": MINATAR,
        "collector": {"use": "device", "frames_per_batch": 16},
    }

    def test_each_convolution_norms_its_channels_at_every_place(self):
        model = self.make(self.bench())
        convolution, norm, _ = model.q_values.encoder.layers
        images = torch.rand(2, 3, 10, 10, 4)
        features = convolution(images.flatten(0, 1).movedim(-1, 1))
        mean, variance = features.mean(1, keepdim=True), features.var(1, unbiased=False, keepdim=True)
        expected = ((features - mean) / (variance + norm.eps).sqrt()).relu()
        found = model.q_values.features(images)
        assert found.shape == (2, 3, 4 * 8 * 8)
        torch.testing.assert_close(found, expected.reshape(2, 3, -1))


def test_value_targets_are_those_of_q_lambda():
    """By the recursion of the paper, from the last step back, with both kinds of ends."""
    sections = {**ACTIONS, **MODEL, "loss": {"use": "pqn"}}
    sections["estimator"] = {"use": "ppo:gae", "gamma": 0.9, "lmbda": 0.6}
    trainer = make_run("env.num_envs=2", sections=sections).trainer
    parts = trainer.parts
    ends = {"terminated": 0, "truncated": 0}
    for _ in range(4):
        batch = parts.collector.collect()
        parts.estimator(batch)
        following, targets = batch["next"], batch["value_target"].clone()
        with torch.no_grad():
            best = parts.stateful["model"].q_values(following["observation"]).amax(-1, keepdim=True)
        for env in range(batch.batch_size[0]):
            later = None
            for time in reversed(range(batch.batch_size[1])):
                reward, value = following["reward"][env, time], best[env, time]
                if following["terminated"][env, time]:
                    later = reward
                elif following["done"][env, time] or later is None:
                    later = reward + 0.9 * value
                else:
                    later = reward + 0.9 * (0.6 * later + 0.4 * value)
                torch.testing.assert_close(targets[env, time], later)
        for name in ends:
            ends[name] += int(following[name].sum())
    assert all(ends.values())


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"env": {"use": "testing:toy", "actions": "bounded"}}, "normed-q-network needs a discrete action space"),
        ({"env": {"use": "testing:toy-dict"}}, "takes flat observations"),
        ({"model": {**MODEL["model"], "channels": [16]}}, "three dimensions"),
        ({"env": MINATAR, "model": {**MODEL["model"], "channels": [8] * 5}}, "too small"),
        ({"env": MINATAR, "model": {**MODEL["model"], "channels": [8], "normalise_input": True}}, "is for flat"),
        ({"estimator": []}, "value_target"),
    ],
)
def test_what_does_not_fit_is_refused(sections, expected):
    with pytest.raises(ConfigError, match=expected):
        make_run(sections={**ACTIONS, **MODEL, "loss": {"use": "pqn"}, **sections})
