"""Everything that is wrong with a config in one message: of its sections, its hooks, and the parts that are built."""

import pytest
from rlcore_plugin_testing import make_run

from rlcore.config.file import read
from rlcore.config.problems import ConfigProblems
from rlcore.errors import ConfigError, PluginError
from rlcore.run.checking import try_out, validated

GOOD = """
[run]
total_frames = 64
[env]
use = "testing:toy"
[model]
use = "mlp"
[loss]
use = "ppo"
[estimator]
use = "ppo:gae"
[optimizer]
use = "adam"
[collector]
frames_per_batch = 16
[buffer]
minibatch_size = 8
"""
HOOKS = """
from rlcore import Component, hookimpl

class Wrong:
    def __init__(self, config, context):
        raise ValueError("no")
    @hookimpl
    def batch_proces(self, batch): ...
    @hookimpl
    def post_steps(self, foo): ...

class Owner:
    def __init__(self, config, context): ...
    @hookimpl
    def optimizer(self, losses): ...

class Needy:
    def __init__(self, config, context):
        context.parts["buffer"].num_epochs
    @hookimpl
    def post_steps(self): ...

@hookimpl
def provide_components():
    return [
        Component("hook", "wrong", Wrong), Component("hook", "owner", Owner), Component("hook", "needy", Needy),
        Component("hook", "owner-2", type("Owner2", (Owner,), {})),
    ]
"""


@pytest.fixture
def problems(tmp_path):
    (tmp_path / "my_hooks.py").write_text(HOOKS)

    def found(*overrides, hooks=(), leave_out=""):
        text = GOOD.replace(leave_out, "")
        text += '[plugins]\nfiles = ["my_hooks.py"]\n' + "".join(
            f'[[hook]]\nuse = "my-hooks:{hook}"\n' for hook in hooks
        )
        (tmp_path / "config.toml").write_text(text)
        try:
            try_out(validated(read(tmp_path / "config.toml", overrides)))
        except ConfigError as error:
            return error.problems if isinstance(error, ConfigProblems) else [str(error)]
        return []

    return found


def test_a_good_config_has_none(problems):
    assert problems() == []


@pytest.mark.parametrize("other", ["loss.clpi=1", "loss.entropy_coef=-1"])
def test_a_wrong_type_is_found_beside_another_problem_of_its_section(problems, other):
    found = "\n".join(problems(other, 'loss.clip_epsilon="0.2"', "loss.clip_value=1"))
    assert "[loss] clip_epsilon: must be a number; found '0.2'" in found
    assert "[loss] clip_value: must be true or false; found 1" in found
    assert f"[loss] {other.split('.')[1].split('=')[0]}" in found


def test_what_depends_on_two_keys_is_found_beside_an_unknown_one(problems):
    found = "\n".join(problems("model.use='dqn:q-network'", "model.v_min=3.0", "model.v_max=1.0", "model.hiden=[1]"))
    assert "v_min = 3.0 must be less than v_max = 1.0" in found
    assert "[model] hiden: unknown key" in found


def test_parts_that_cannot_be_built_are_told_together(problems):
    found = problems("buffer.minibatch_size=17", "evaluator.use='episodes'", hooks=["wrong", "owner", "owner-2"])
    assert len(found) == 5
    for part in (
        "minibatch_size = 17",
        "'batch_proces'",
        "'foo'",
        "ValueError: no; raised while building",
        "one owner",
    ):
        assert sum(part in line for line in found) == 1, part


def test_problems_of_sections_and_of_building_are_told_together(problems):
    found = problems("metrics.evry=1", "optimizer.lr='1'", "buffer.minibatch_size=17", hooks=["wrong"])
    assert len(found) == 6
    found = "\n".join(found)
    assert "[metrics] evry" in found
    assert "minibatch_size = 17" in found
    assert "'batch_proces'" in found


def test_an_estimator_that_is_left_out_is_told_with_the_rest(problems):
    found = problems("buffer.minibatch_size=17", leave_out='[estimator]\nuse = "ppo:gae"\n')
    assert len(found) == 2
    assert "reads 'advantage', 'value_target'" in found[1]


def test_what_follows_from_another_problem_is_not_told(problems):
    found = problems("collector.frames_per_batch=15", "buffer.minibatch_size=16", hooks=["needy"])
    assert len(found) == 1
    assert "frames_per_batch = 15" in found[0]


def test_a_single_problem_keeps_its_kind_and_message():
    class Misspelt:
        pass

    with pytest.raises(PluginError, match=r"^hook 'Misspelt-1' .* implements no point"):
        make_run(hooks=[Misspelt()])
    with pytest.raises(ConfigError, match=r"^\[buffer\] minibatch_size = 17 is more than the 16 steps"):
        make_run("buffer.minibatch_size=17")
