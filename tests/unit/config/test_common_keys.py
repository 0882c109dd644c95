"""`[defaults]`, and discounts that agree."""

from __future__ import annotations

import logging

import pytest

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


def test_a_discount_that_does_not_count_need_not_agree(write_config):
    sections = {
        "loss": {"use": "dqn", "gamma": 0.9},
        "model": {"use": "mlp", "parts": ["q_values"]},
        "estimator": None,
        "buffer": None,
    }
    path = write_config(**sections)
    rlcore.load_config(path, ["buffer.use=replay"])
    with pytest.raises(ConfigError, match=r"\[buffer\] gamma = 0.99 \(its default\)"):
        rlcore.load_config(path, ["buffer.use=replay", "buffer.n_steps=3"])
