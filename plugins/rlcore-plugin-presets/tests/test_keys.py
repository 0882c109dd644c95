"""Keys by their name alone, and by their full path."""

from pathlib import Path

import numpy as np
import pytest
import torch
from rlcore_plugin_presets.config_text import as_raw, filled
from rlcore_plugin_presets.keys import place_of, placed, split, writable
from rlcore_plugin_presets.presets import named

from rlcore.config.sections import validate
from rlcore.errors import ArgumentTypeError, ConfigError


def config(preset="ppo-mujoco"):
    (found,) = named(preset)
    return validate(as_raw(filled(found, "x", found.env_id), Path("x.toml")))


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("clip_epsilon", [("loss", "clip_epsilon")]),
        ("lr", [("optimizer", "0", "lr")]),
        ("seed", [("run", "seed")]),
        ("num_envs", [("env", "num_envs")]),
        ("keep_last", [("checkpoint", "keep_last")]),
        ("episodes", [("evaluator", "episodes")]),
        ("gamma", [("transform", "1", "gamma"), ("estimator", "gamma")]),
    ],
)
def test_a_name_is_the_key_of_the_section_that_has_it(key, place):
    assert placed({key: 1}, config()) == dict.fromkeys(place, 1)


def test_a_key_of_several_sections_names_them():
    with pytest.raises(ConfigError, match=r"'every' is a key of several sections: metrics.every, checkpoint.every, "):
        placed({"every": 5}, config())


@pytest.mark.parametrize(("key", "told"), [("lrr", "did you mean 'lr'"), ("enable", "no section of the preset")])
def test_a_key_of_no_section_names_what_is_like_it(key, told):
    with pytest.raises(ConfigError, match=told):
        placed({key: 5}, config())


def test_full_paths_are_told_from_names():
    assert split({"loss.gamma": 0.5, "lr": 1}) == ({("loss", "gamma"): 0.5}, {"lr": 1})


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("loss.gamma", ("loss", "gamma")),
        ("optimizer.lr", ("optimizer", "0", "lr")),
        ("optimizer.1.lr", ("optimizer", "1", "lr")),
        ("env.kwargs.gravity", ("env", "kwargs", "gravity")),
    ],
)
def test_a_path_is_that_of_an_override(path, place):
    assert place_of(path) == place


@pytest.mark.parametrize("path", ["loss.", ".gamma", "loss..gamma"])
def test_a_path_without_a_key_is_refused(path):
    with pytest.raises(ConfigError, match=r"must read section\.key"):
        place_of(path)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (np.float64(0.5), 0.5),
        (np.int32(3), 3),
        (torch.tensor(2.0), 2.0),
        ((64, 64), [64, 64]),
        (Path("a/b"), "a/b"),
        (True, True),
        ({"updates": np.int64(4)}, {"updates": 4}),
    ],
)
def test_what_toml_can_hold_is_written(value, written):
    assert writable("key", value) == written
    assert type(writable("key", value)) is type(written)


@pytest.mark.parametrize("value", [None, object(), print, float("nan"), np.zeros(2)])
def test_what_toml_cannot_hold_is_refused(value):
    with pytest.raises(ArgumentTypeError, match=r"key = .* cannot be written in a config"):
        writable("key", value)
