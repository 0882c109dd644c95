"""Which hooks are taken, refused, and in what order and with which arguments their functions are called."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

import rlcore
from rlcore import PluginError, hookimpl
from rlcore.hooks.declaration import point, points_of
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.hooks.resolution import marked
from rlcore.hooks.specs import POINTS


def resolved(*instances):
    return LoopHooks([Hook(f"hook-{number}", instance) for number, instance in enumerate(instances, 1)])


class Ordered:
    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    @hookimpl
    def post_steps(self):
        self.calls.append(self.name)


def test_hooks_are_called_in_the_order_given(build):
    calls = []
    build([Ordered(name, calls) for name in "cab"], run={"total_frames": 64}).trainer.train()
    assert calls == list("cab" * 2)


def test_equal_instances_are_separate_hooks():
    class Same(Ordered):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    calls = []
    resolved(Same("a", calls), Same("b", calls)).post_steps(None, None)
    assert calls == ["a", "b"]


def test_tryfirst_and_trylast_move_a_hook():
    calls = []

    class First(Ordered):
        @hookimpl(tryfirst=True)
        def post_steps(self):
            self.calls.append(self.name)

    class Last(Ordered):
        @hookimpl(trylast=True)
        def post_steps(self):
            self.calls.append(self.name)

    resolved(Last("last", calls), Ordered("a", calls), First("first", calls), Ordered("b", calls)).post_steps(
        None, None
    )
    assert calls == ["first", "a", "b", "last"]


def test_two_owners_of_one_point_are_refused_by_name():
    class Owns:
        @hookimpl
        def optimizer(self):
            return {}

    hooks = [Hook("sam", Owns(), "plugin-sam 1.0"), Hook("muon", Owns(), "plugin-muon 2.1")]
    with pytest.raises(PluginError) as raised:
        LoopHooks(hooks)
    message = str(raised.value)
    assert all(part in message for part in ("'optimizer'", "'sam' (plugin-sam 1.0)", "'muon' (plugin-muon 2.1)"))


@pytest.mark.parametrize("options", [{"wrapper": True}, {"hookwrapper": True}])
def test_wrappers_are_refused(options):
    class Wraps:
        @hookimpl(**options)
        def post_steps(self):
            yield

    with pytest.raises(PluginError, match=r"'hook-1'.*wraps 'post_steps'.*points before and after"):
        resolved(Wraps())


@pytest.mark.parametrize("name", list(POINTS))
def test_a_misspelt_point_is_refused_with_the_nearest_name(name):
    hook = type("Misspelt", (), {name[:-1] + "q": hookimpl(lambda self: None)})()
    with pytest.raises(PluginError, match=rf"hook 'hook-1'.*implements '{name[:-1]}q'.*did you mean '{name}'\?"):
        resolved(hook)


def test_a_hook_that_implements_nothing_is_refused():
    class Unmarked:
        def post_steps(self):
            pass

    with pytest.raises(PluginError, match=r"'hook-1'.*implements no point: mark its methods with @hookimpl"):
        resolved(Unmarked())


def test_an_unknown_argument_is_refused():
    class Asks:
        @hookimpl
        def post_steps(self, batch, weather):
            pass

    with pytest.raises(PluginError, match=r"'hook-1'.*'post_steps' asks for 'weather'.*it has batch, trainer"):
        resolved(Asks())


@pytest.mark.parametrize("name", list(POINTS))
def test_arguments_can_be_left_out_and_come_in_any_order(name):
    arguments = POINTS[name].arguments
    received = []
    for chosen in ((), arguments[:1], arguments[-1:], arguments, tuple(reversed(arguments))):
        source = f"lambda {', '.join(chosen)}: received.append(({', '.join(chosen)}{',' if chosen else ''}))"
        hook = type("Asks", (), {})()
        setattr(hook, name, hookimpl(eval(source, {"received": received})))
        (implementation,) = resolved(hook).implementations(name)
        implementation.call(*arguments)  # each argument's value is its name
        assert received.pop() == chosen


def test_arguments_with_defaults_keep_them():
    received = []

    class Asks:
        @hookimpl
        def post_steps(self, batch, extra=5):
            received.append((batch, extra))

    resolved(Asks()).post_steps("batch", "trainer")
    assert received == [("batch", 5)]


def test_static_and_class_methods_are_hooks():
    calls = []

    class Kinds:
        @staticmethod
        @hookimpl
        def post_steps(batch):
            calls.append(batch)

        @classmethod
        @hookimpl
        def post_epoch(cls, batch):
            calls.append((cls, batch))

    hooks = resolved(Kinds())
    hooks.post_steps("batch", None)
    hooks.post_epoch("batch", None)
    assert calls == ["batch", (Kinds, "batch")]


def test_properties_of_a_hook_are_not_executed():
    class Touchy:
        @property
        def expensive(self):
            raise AssertionError("a property was executed")

        @hookimpl
        def post_steps(self):
            pass

    assert list(marked(Touchy())) == ["post_steps"]
    assert resolved(Touchy()).used("post_steps")


def test_the_marks_of_a_module_are_found_whatever_it_tells_dir():
    module = ModuleType("lazy")
    exec("def __dir__(): return ['imported_when_asked_for']", vars(module))
    module.provide_components = hookimpl(lambda: [])
    assert dir(module) == ["imported_when_asked_for"]
    assert list(marked(module)) == ["provide_components"]


def test_specs_take_arguments_that_hooks_may_ask_for():
    for spec in POINTS.values():
        asks_for = set(spec.arguments) & {"trainer", "learner"}
        assert asks_for == ({"learner"} if spec.where == "inner" else {"trainer"}), spec.name
        assert spec.doc, f"{spec.name} says nothing about itself"


def test_a_declared_point_is_found_in_its_class():
    class Specs:
        @point("notify", "outer")
        def something(self, batch, trainer) -> None:
            """Called sometimes."""

        def helper(self):
            """Declares nothing."""

    (declared,) = points_of(Specs).values()
    assert (declared.name, declared.kind, declared.where) == ("something", "notify", "outer")
    assert declared.arguments == ("batch", "trainer")
    assert (declared.returns, declared.doc) == ("None", "Called sometimes.")


# from a config

COUNTERS = """
from pydantic import BaseModel
from rlcore import Component, hookimpl

class Counter:
    class Config(BaseModel, extra="forbid"):
        step: int = 1

    def __init__(self, config, context):
        self.step, self.count, self.name = config.step, 0, context.name
        self.seed = context.seed()

    @hookimpl
    def post_steps(self):
        self.count += self.step

    @hookimpl
    def post_steps_log(self):
        return {"count": self.count}

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]

@hookimpl
def provide_components():
    return [Component("hook", "counter", Counter)]
"""


@pytest.fixture
def counters(write_config, workdir):
    (workdir / "my_counters.py").write_text(COUNTERS)
    sections = [{"use": "counter", "step": 10}, {"use": "counter"}, {"use": "counter", "name": "named", "step": 3}]
    return write_config(plugins={"files": ["my_counters.py"]}, hook=sections)


def test_several_instances_of_one_hook_have_their_own_config_and_state(counters):
    run = rlcore.build(rlcore.load_config(counters), write=False)
    hooks = {hook.name: hook.instance for hook in run.trainer.hooks.hooks}
    assert list(hooks) == ["counter", "counter-2", "named"], "in the order of the config, each with a name of its own"
    assert [hook.name for hook in hooks.values()] == list(hooks)
    assert len({hook.seed for hook in hooks.values()}) == 3
    run.trainer.train()
    states = run.trainer.state_dict()
    assert {name: states[f"hook.{name}"] for name in hooks} == {
        "counter": {"count": 30},
        "counter-2": {"count": 3},
        "named": {"count": 9},
    }
    latest = run.trainer.metrics.latest
    assert (latest["counter/count"], latest["counter-2/count"], latest["named/count"]) == (30, 3, 9)


def test_the_state_of_each_hook_instance_is_restored(counters):
    first = rlcore.build(rlcore.load_config(counters))
    first.trainer.stop_at = 64
    first.trainer.train()
    second = rlcore.build(rlcore.load_config(counters), resume=True)
    assert [hook.instance.count for hook in second.trainer.hooks.hooks] == [20, 2, 6]
    assert "hook.named: restored" in [str(line) for line in second.report]
    second.trainer.train()
    assert [hook.instance.count for hook in second.trainer.hooks.hooks] == [30, 3, 9]


class Weighs(torch.nn.Linear):
    """A hook with weights, as one that learns what rewards novelty is; `dir` names them besides its methods."""

    @hookimpl
    def post_steps(self):
        with torch.no_grad():
            self.weight += 1


def test_a_hook_may_be_a_module_with_weights(write_config):
    path = write_config(run={"total_frames": 64}, checkpoint={"use": "testing:toy", "every": 32})
    whole, first, second = (Weighs(2, 1) for _ in range(3))
    first.load_state_dict(whole.state_dict())
    start = whole.weight.clone()
    rlcore.build(rlcore.load_config(path), write=False, hooks=[whole]).trainer.train()
    run = rlcore.build(rlcore.load_config(path), hooks=[first])
    run.trainer.stop_at = 32
    run.trainer.train()
    rlcore.build(rlcore.load_config(path), resume=True, hooks=[second]).trainer.train()
    assert torch.equal(second.weight, whole.weight)
    assert torch.equal(whole.weight, start + 2)


def test_hooks_of_the_config_come_before_those_of_a_script(counters):
    calls = []
    run = rlcore.build(rlcore.load_config(counters), write=False, hooks=[Ordered("script", calls)])
    names = [implementation.hook.name for implementation in run.trainer.hooks.implementations("post_steps")]
    assert names == ["counter", "counter-2", "named", "Ordered-1"]


def test_two_hooks_of_one_name_are_refused(counters, write_config):
    sections = [{"use": "counter", "name": "same"}, {"use": "counter", "name": "same"}]
    path = write_config(plugins={"files": ["my_counters.py"]}, hook=sections)
    with pytest.raises(rlcore.ConfigError, match=r"\[hook.1\] name: 'same' is the name of another hook"):
        rlcore.load_config(path)


def test_hooks_do_not_change_the_training_of_a_run(build):
    class Watches:
        def __init__(self):
            for name in POINTS:
                if name not in ("optimizer", "post_loss"):
                    setattr(self, name, hookimpl(lambda: None))

    plain, watched = build(), build([Watches()])
    plain.trainer.train()
    watched.trainer.train()
    for first, second in zip(plain.trainer.model.parameters(), watched.trainer.model.parameters(), strict=True):
        assert torch.equal(first, second)
