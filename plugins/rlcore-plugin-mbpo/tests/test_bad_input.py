"""What cannot be is refused before the first frame, with section and key."""

import re

import pytest
import torch
from rlcore_plugin_testing import make_trainer

from rlcore.errors import ConfigError, RlcoreError

from .sections import MODEL, around, offline, write_toy

TOY_MODEL = {"use": "sac:actor-critic", "hidden": [8], "random_frames": 0}
CASES = {
    "discrete actions": ({"env": {"use": "testing:toy", "actions": "discrete"}}, "needs actions in a Box"),
    "dicts": (
        {"env": {"use": "testing:toy-dict", "actions": "bounded"}},
        "[model] mbpo predicts observations in a Box",
    ),
    "images": ({"env": {"use": "testing:toy-pixels", "actions": "bounded"}}, "images are not predicted"),
    "another model": ({"model": TOY_MODEL}, '[model] use = "mbpo"'),
    "no termination": ({"model": {**MODEL, "termination": "learn"}}, "[model] termination = 'learn'"),
    "no function": ({"model": {**MODEL, "termination": "no_such:thing"}}, "there is no module 'no_such'"),
    "elites": ({"model": {**MODEL, "elites": 4}}, "elites = 4 are chosen from members = 3"),
    "its own optimizer": (
        {"optimizer": [{"use": "adam", "parameters": ["dynamics"]}]},
        "the parts ['dynamics'] have no weights to train",
    ),
    "nothing collected": (
        {"run": {"name": "toy", "seed": 1, "total_updates": 8, "device": "cpu"}, "collector": []},
        "waits for batches, and nothing is collected",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_is_refused(name):
    sections, message = CASES[name]
    with pytest.raises(RlcoreError, match=re.escape(message)):
        make_trainer(sections=around(**sections) if "model" not in sections else {**around(), **sections})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("real_share", "2.0", "[buffer] real_share: Input should be less than or equal to 1"),
        ("rollout_length", "[1, 15, 5, 5]", "[buffer] rollout_length: the schedule from 5 to 5"),
        ("minibatch_size", "1", "[buffer] real_share = 0.25 of minibatch_size = 1 leaves no real row"),
        ("dynamics_evry", "3", "did you mean 'dynamics_every'?"),
    ],
)
def test_messages_say_section_and_key(key, value, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        make_trainer(f"buffer.{key}={value}", sections=around())


def test_a_rule_that_returns_something_else_is_refused(monkeypatch):
    monkeypatch.setattr("rlcore_plugin_mbpo.terminations.hopper", lambda o, a, f: f, raising=True)
    sections = around(model={"termination": "rlcore_plugin_mbpo.terminations:hopper"})
    with pytest.raises(ConfigError, match=r"returned torch.float32 \[20, 3\]; it must return a bool tensor \[20\]"):
        make_trainer(sections=sections).train()


def test_dynamics_that_are_not_finite_end_the_run():
    trainer = make_trainer(sections=around())
    with torch.no_grad():
        trainer.model.dynamics.layers[0].weight[1] = torch.nan
    with pytest.raises(RlcoreError, match=r"the dynamics predict what is not finite after 1 epochs"):
        trainer.train()


def test_rollouts_outside_of_the_data_are_cut_with_a_warning_and_real_rows_take_their_place(caplog, monkeypatch):
    trainer = make_trainer(sections=around())
    dynamics = trainer.model.dynamics
    fit = dynamics.fit_statistics
    monkeypatch.setattr(dynamics, "fit_statistics", lambda *rows: (fit(*rows), dynamics.high.fill_(-9e9)))
    trainer.train()
    assert "20 of 20 imagined rollouts left the range of the data and were cut there" in caplog.text
    assert trainer.progress.updates == 16


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"minibatch_size": 100_000}, "lower it, or record more episodes"),
        ({"path": "nowhere"}, "nowhere"),
        ({"rollouts_every": 7}, "rollouts_every = 7 is looked at once in updates_per_iteration = 8 updates"),
        ({"rollouts_every": 20}, "rollouts_every = 20 is looked at once in updates_per_iteration = 8 updates; give a"),
        (
            {"dynamics_every": {"updates": 12}},
            "is looked at once in updates_per_iteration = 8 updates; give a multiple",
        ),
        ({"dynamics_every": {"frames": 8}}, "no frames are collected; give a number of updates"),
        ({"n_steps": 2}, "n_steps = 2: imagined transitions are of one step"),
        ({"return_to_go": True}, "return_to_go = true: an imagined rollout does not go to the end of an episode"),
    ],
)
def test_a_dataset_that_cannot_be_used_is_refused(keys, message, tmp_path):
    with pytest.raises(RlcoreError, match=re.escape(message)):
        make_trainer(
            sections={**(found := offline(write_toy(tmp_path / "toy"))), "buffer": {**found["buffer"], **keys}}
        )
