"""`[defaults]`, and discounts that agree."""

from __future__ import annotations

import logging

import pytest
import torch
from tensordict import TensorDict

import rlcore
from rlcore import ConfigError

NORM = [{"use": "transforms:reward-norm"}]


def test_defaults_reach_every_section_that_has_the_key_and_does_not_say_it(write_config):
    path = write_config(defaults={"gamma": 0.9, "hidden": [4]}, transform=NORM)
    config = rlcore.load_config(path)
    assert config.one("estimator").config.gamma == 0.9
    assert config.one("transform").config.gamma == 0.9
    assert list(config.one("model").config.hidden) == [8]
    resolved = config.resolved()
    assert "defaults" not in resolved
    assert resolved["estimator"]["gamma"] == 0.9


def test_defaults_reach_sections_of_the_core_and_default_components(write_config):
    config = rlcore.load_config(write_config(defaults={"keep_last": 7, "seed": 5, "name": "named"}, run={"seed": 1}))
    assert (config.checkpoint.keep_last, config.run.seed, config.run.name) == (7, 1, "tiny")
    config = rlcore.load_config(write_config(defaults={"minibatch_size": 8}, buffer=None))
    assert config.one("buffer").config.minibatch_size == 8


@pytest.mark.parametrize(
    ("defaults", "message"),
    [
        ({"gama": 0.9}, r"\[defaults\] gama: no section of this config has such a key; did you mean 'gamma'\?"),
        ({"gamma": 2.0}, r"\[estimator\] gamma: .*found 2.0 .*; from \[defaults\]"),
    ],
)
def test_a_default_that_fits_nowhere_is_refused(write_config, defaults, message):
    with pytest.raises(ConfigError, match=message):
        rlcore.load_config(write_config(defaults=defaults))


def test_explain_says_that_a_value_is_of_the_defaults(write_config, cli):
    out = cli("config", "explain", write_config(defaults={"gamma": 0.9})).out
    assert "gamma = 0.9  ([defaults])" in out
    out = cli("config", "explain", write_config(), "--set", "defaults.gamma=0.9").out
    assert "gamma = 0.9  ([defaults] of --set)" in out


def test_a_discount_that_differs_from_one_that_nobody_said_is_refused(write_config):
    path = write_config(estimator={"gamma": 0.9}, transform=NORM)
    with pytest.raises(ConfigError) as raised:
        rlcore.load_config(path)
    text = str(raised.value)
    assert "[transform] gamma = 0.99 (its default) and [estimator] gamma = 0.9 differ" in text
    assert "say it once as gamma in [defaults], or in each of these sections if that is meant" in text


def test_discounts_that_are_meant_to_differ_are_told(write_config, caplog):
    caplog.set_level(logging.WARNING)
    rlcore.load_config(write_config(estimator={"gamma": 0.9}, transform=[NORM[0] | {"gamma": 0.99}]))
    assert "discounts differ: [transform] gamma = 0.99 and [estimator] gamma = 0.9" in caplog.text


OFF_POLICY = {
    "loss": {"use": "dqn", "gamma": 0.9},
    "model": {"use": "mlp", "parts": ["q_values"]},
    "estimator": None,
    "buffer": None,
}


def test_a_discount_that_does_not_count_need_not_agree(write_config):
    config = rlcore.load_config(write_config(**OFF_POLICY), ["buffer.use=replay"])
    assert config.one("buffer").config.gamma == 0.99, "what a run without joined steps has written"


def test_a_buffer_that_joins_steps_takes_the_discount_of_the_loss(write_config, cli, caplog):
    path, joined = write_config(**OFF_POLICY), ["buffer.use=replay:prioritized", "buffer.n_steps=3"]
    config = rlcore.load_config(path, joined)
    assert config.one("buffer").config.gamma == 0.9
    assert config.resolved()["buffer"]["gamma"] == 0.9
    assert "discounts differ" not in caplog.text
    out = cli("config", "explain", path, "--set", joined[0], "--set", joined[1]).out
    assert "gamma = 0.9  ([loss] gamma)" in out


def test_a_buffer_that_joins_steps_may_have_a_discount_of_its_own(write_config, caplog):
    caplog.set_level(logging.WARNING)
    config = rlcore.load_config(
        write_config(**OFF_POLICY), ["buffer.use=replay", "buffer.n_steps=3", "buffer.gamma=0.5"]
    )
    assert config.one("buffer").config.gamma == 0.5
    assert "discounts differ: [loss] gamma = 0.9 and [buffer] gamma = 0.5" in caplog.text


def test_a_buffer_of_a_script_takes_the_discount_of_the_loss_before_it():
    make = rlcore.Factory(total_frames=100)
    make.env("gymnasium", id="CartPole-v1")
    make.model("dqn:q-network")
    before = make.buffer("replay", n_steps=3)
    make.loss("dqn:dqn", gamma=0.5)
    steps = rewards(4)
    for buffer, expected in (
        (before, 1 + 0.99 + 0.99**2),
        (make.buffer("replay", n_steps=3), 1.75),
        (make.buffer("replay", n_steps=3, gamma=1.0), 3.0),
    ):
        buffer.add(steps)
        assert buffer.sample(1)["next", "reward"].item() == pytest.approx(expected)


def rewards(time):
    """Return a batch of one env that gives 1 in every step."""
    following = {"reward": torch.ones(1, time, 1), "done": torch.zeros(1, time, 1, dtype=torch.bool)}
    return TensorDict({"observation": torch.zeros(1, time, 4), "next": TensorDict(following, [1, time])}, [1, time])
