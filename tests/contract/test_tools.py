"""What plugin authors get besides the suites: light imports, small runs, comparison, the toy env."""

import math
import re
from collections import deque
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing import (
    check_light_import,
    contracts,
    difference,
    make_config,
    make_run,
    make_trainer,
    snapshot,
    through_checkpoint,
)
from rlcore_plugin_testing.contracts import LossContract, SchedulerContract
from rlcore_plugin_testing.contracts.estimator import reference_gae

from rlcore import hookimpl
from rlcore.errors import ConfigError


def test_a_heavy_import_is_refused_with_its_place():
    with pytest.raises(AssertionError) as caught:
        check_light_import("rlcore_plugin_testing.toy")
    message = str(caught.value)
    for name in ("torch", "gymnasium", "pydantic"):
        assert f"{name} (imported at " in message
    assert "toy.py:" in message
    assert "import string" in message


def test_what_is_allowed_may_be_heavy():
    pydantic = ["pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"]
    check_light_import("rlcore_plugin_gradient.schedules", allow=pydantic)


def test_an_import_that_fails_is_refused():
    with pytest.raises(AssertionError, match="no_such_plugin"):
        check_light_import("no_such_plugin")


@pytest.mark.parametrize(
    "module", ["rlcore", "rlcore_plugin_testing", "rlcore_plugin_testing.command", "rlcore.plugins.host"]
)
def test_what_lists_plugins_is_light(module):
    check_light_import(module)


class Counter:
    def __init__(self):
        self.steps = 0

    @hookimpl
    def post_steps(self):
        self.steps += 1


def test_a_trainer_takes_overrides_and_hooks():
    counter = Counter()
    trainer = make_trainer("run.total_frames=48", "optimizer.lr=0.5", hooks=[counter])
    trainer.train()
    assert trainer.progress.frames == 48
    assert counter.steps == 3
    assert trainer.learner.scheduled() == {"lr": 0.5}


def test_a_section_can_be_replaced_or_left_out():
    config = make_config(sections={"evaluator": [], "model": {"use": "testing:toy", "scale": 0.5}})
    assert config.one("evaluator") is None
    assert config.one("model").config.scale == 0.5


def test_a_small_run_does_not_follow_the_shell(monkeypatch):
    monkeypatch.setenv("CKPT_BACKEND", "no-such-back-end")
    assert make_config().one("checkpoint").name == "toy"


def test_a_mistake_in_an_override_is_an_error():
    with pytest.raises(ConfigError, match="did you mean 'lr'"):
        make_trainer("optimizer.lrr=1")


def test_a_run_without_a_folder_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainer = make_trainer()
    trainer.train()
    assert trainer.save() is None
    assert not list(tmp_path.iterdir())


def test_a_small_run_can_be_resumed(tmp_path):
    first = make_run(folder=tmp_path).trainer
    first.stop_at = 32
    first.train()
    second = make_run(folder=tmp_path, resume=True).trainer
    assert second.progress.frames == 32
    assert second.progress.iterations == 2


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_the_toy_env_returns_what_it_promises(mode):
    episodes = []

    class Watch:
        @hookimpl
        def episode_end(self, episode):
            episodes.append(episode)

    trainer = make_trainer("env.num_envs=4", f"env.reset_mode={mode}", "run.total_frames=128", hooks=[Watch()])
    trainer.train()
    assert len(episodes) > 20
    assert all(episode.return_ == episode.length * (episode.length + 1) / 2 for episode in episodes)
    assert {episode.length for episode in episodes} == {3, 4, 5}


DIFFERENT = [
    (1, 2, "1, not 2"),
    (1, 1.0, "a int, not a float"),
    ({"a": 1}, {"b": 1}, "keys"),
    ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, r"a\[1\]\.b is 2, not 3"),
    ([1], [1, 2], "1 entries, not 2"),
    (torch.ones(2), torch.ones(2, dtype=torch.float64), "float32"),
    (torch.zeros(1), -torch.zeros(1), "not"),
    (torch.ones(20), torch.zeros(20), "other values"),
    (np.ones(2), np.ones(3), r"\[2\], not"),
    (torch.ones(1), 1.0, "Tensor"),
]


@pytest.mark.parametrize(("left", "right", "expected"), DIFFERENT)
def test_a_difference_is_found_and_named(left, right, expected):
    found = difference(left, right)
    assert found is not None
    assert re.search(expected, found)


EQUAL = [math.nan, torch.tensor([math.nan]), np.float32(1), {"a": (1, [None, "x"])}, np.zeros(0)]


@pytest.mark.parametrize("value", EQUAL)
def test_equal_values_have_no_difference(value):
    assert difference(value, value) is None


def test_a_snapshot_holds_data_and_generators():
    class Part:
        def __init__(self):
            self.number, self.tensor, self.array = 1, torch.ones(2), np.ones(2)
            self.recent, self.names = deque([1.0], maxlen=3), {"b", "a"}
            self.generators = [torch.Generator().manual_seed(1), np.random.default_rng(1)]
            self.helper = Helper()
            self.other = math

    class Helper:
        def __init__(self):
            self.count = 0

    part = Part()
    before = snapshot(part)
    assert difference(before, snapshot(part)) is None
    changes = [
        lambda: part.tensor.add_(1),
        lambda: part.array.__setitem__(0, 5),
        lambda: part.recent.append(2.0),
        lambda: part.names.add("c"),
        lambda: torch.rand(1, generator=part.generators[0]),
        lambda: part.generators[1].random(),
        lambda: setattr(part.helper, "count", 1),
    ]
    for change in changes:
        change()
        after = snapshot(part)
        assert difference(before, after) is not None
        before = after


def test_a_state_through_a_checkpoint_is_a_copy():
    state = {"a": torch.ones(2), "b": (1, 2.5), "c": np.arange(3), 4: "key"}
    back = through_checkpoint(state)
    assert difference(state, back) is None
    state["a"].zero_()
    assert back["a"].tolist() == [1, 1]


def test_the_reference_for_gae_is_right_where_it_is_easy():
    """With lambda = 1, the advantage is the discounted return less the value."""
    from tensordict import TensorDict

    flags = {name: torch.zeros(1, 3, 1, dtype=torch.bool) for name in ("terminated", "done")}
    flags["terminated"][0, 2] = flags["done"][0, 2] = True
    entries = {"observation": torch.ones(1, 3, 1), "reward": torch.tensor([1.0, 2.0, 3.0]).reshape(1, 3, 1), **flags}
    batch = TensorDict({"observation": torch.ones(1, 3, 1), "next": TensorDict(entries, [1, 3])}, [1, 3])
    value = torch.full((1, 3, 1), 10.0)
    found = reference_gae(batch, value, value, 0.5, 1.0)
    assert found.tolist() == [[1 + 1 + 0.75 - 10, 2 + 1.5 - 10, 3 - 10]]


def test_the_bench_of_a_component_is_there_without_its_suite():
    discrete = {"env": {"use": "testing:toy", "actions": "discrete"}}
    ppo = LossContract.of("ppo", {"clip_epsilon": 0.125}, discrete)
    context = ppo.bench()
    assert isinstance(context.env_spec.action_space, gymnasium.spaces.Discrete)
    assert set(ppo.make(context).requires) == {"actor", "critic"}
    assert (ppo.settings().clip_epsilon, ppo.settings(clip_epsilon=0.5).clip_epsilon) == (0.125, 0.5)
    linear = SchedulerContract.of("linear")
    assert (linear.use, LossContract.use, ppo.use) == ("linear", "", "ppo"), "each is of its own"


def test_the_suites_use_no_marks_that_a_package_of_others_does_not_know():
    files = Path(contracts.__file__).parent.glob("*.py")
    marks = {mark for file in files for mark in re.findall(r"pytest\.mark\.(\w+)", file.read_text())}
    assert marks == {"parametrize"}
