"""Learners in processes of their own train as one, heal, answer in order, and leave nothing."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch
from rlcore_plugin_testing.compare import difference

from rlcore import (
    AlgorithmConfig,
    Columns,
    LearnerGroup,
    MultiAgentBatch,
    PPOConfig,
    RLModuleSpec,
)
from rlcore.errors import ConfigError, NotSupportedError, NumericalError, RankLost
from tests import regression
from tests.regression import Linear, Regression, rows

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the memory of learners needs Linux")


def config_of(num_learners, *ids, **settings):
    return regression.config_of(*ids, **settings).learners(num_learners=num_learners)


def each(answers):
    """Return what each learner returned."""
    return [answer.get() for answer in answers]


def process_number(learner):
    return os.getpid()


def end(learner):
    os._exit(9)


def weights_of(learner):
    return learner.get_state("rl_module")["rl_module"]


@pytest.fixture
def made():
    groups = []

    def make(num_learners=2, *ids, **keys):
        groups.append(LearnerGroup(config_of(num_learners, *ids), **keys))
        return groups[-1]

    yield make
    for group in groups:
        group.shutdown()


def test_learners_are_one_on_all_rows_and_leave_nothing(made):
    """Also where there are fewer rows of a module than learners."""
    made().shutdown()  # where no fork is safe Python starts a server for them once, and keeps it
    files = set(os.listdir("/proc/self/fd"))
    group, alone = made(2, "a", "b"), made(0, "a", "b")
    assert (len(group), group.is_remote, len(alone)) == (2, True, 0)
    for seed in range(3):
        batch = {"a": rows(9, seed), "b": rows(1, seed + 10)}
        results = group.update(batch, timesteps={"num_env_steps_sampled_lifetime": seed})
        alone.update(batch, timesteps={"num_env_steps_sampled_lifetime": seed})
        assert [result["a"]["num_module_steps_trained"] for result in results] == [4, 5]
        assert [result.get("b", {}).get("num_module_steps_trained") for result in results] == [None, 1]
    first, second = each(group.foreach_learner(weights_of))
    assert difference(first, second) is None
    for module_id, weights in alone.get_weights().items():
        for name, value in weights.items():
            np.testing.assert_allclose(group.get_weights([module_id])[module_id][name], value, rtol=0, atol=1e-6)
    pids = each(group.foreach_learner(process_number))
    assert len({os.getpid(), *pids}) == 3
    group.shutdown()
    group.shutdown()
    assert len(group) == 0
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
    assert set(os.listdir("/proc/self/fd")) == files
    with pytest.raises(ConfigError, match="shut down"):
        group.update(rows(4))


class Noting(Regression):
    """Notes which of its own methods were called."""

    def build(self):
        self.called = ["build"]
        super().build()

    def set_state(self, state):
        self.called.append("set_state")
        super().set_state(state)

    def add_module(self, **keys):
        self.called.append("add_module")
        super().add_module(**keys)

    def remove_module(self, module_id, **keys):
        self.called.append("remove_module")
        super().remove_module(module_id, **keys)


def called(learner):
    return learner.called


@pytest.mark.parametrize("num_learners", [0, 2])
def test_what_a_learner_overrides_is_what_a_group_calls(num_learners):
    group = LearnerGroup(config_of(num_learners, learner_class=Noting))
    group.set_state(group.get_state())
    group.set_weights(group.get_weights())
    group.add_module(module_id="b", module_spec=RLModuleSpec(Linear))
    group.remove_module("b")
    told = ["build", "set_state", "set_state", "add_module", "remove_module"]
    try:
        assert each(group.foreach_learner(called)) == [told] * max(1, num_learners)
    finally:
        group.shutdown()


def compiled_sizes(learner):
    return [compiled._rows for compiled in learner._compiled.values()]


@pytest.mark.slow
def test_learners_in_processes_compile_their_updates_too():
    columns = {
        "obs": np.zeros((16, 4), np.float32),
        "actions": np.zeros(16, np.int64),
        "action_logp": np.full(16, np.log(0.5), np.float32),
        "action_dist_inputs": np.zeros((16, 2), np.float32),
        "vf_preds": np.zeros(16, np.float32),
        "advantages": np.linspace(-1, 1, 16, dtype=np.float32),
        "value_targets": np.linspace(0, 1, 16, dtype=np.float32),
    }

    def weights(compiled, num_learners):
        config = PPOConfig().learners(num_learners=num_learners).training(lr=1e-3, grad_clip=0.5)
        config = config.framework(torch_compile_learner=compiled).rl_module(model_config={"hidden": [8]})
        group = config.build_learner_group(env="CartPole-v1")
        try:
            group.update(columns, num_epochs=3, minibatch_size=16 // max(1, num_learners))
            assert each(group.foreach_learner(compiled_sizes)) == [[8] if compiled else []] * max(1, num_learners)
            return group.get_weights()["default_policy"]
        finally:
            group.shutdown()

    eager = weights(False, 2)
    for name, value in weights(True, 2).items():
        np.testing.assert_allclose(value, eager[name], rtol=0, atol=1e-5)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_learner_that_is_killed_costs_time_alone(made, lost):
    """Between two updates, and in the middle of one that was given later."""
    group, undisturbed = made(), made()
    for seed in range(4):
        if seed == 1:
            os.kill(each(group.foreach_learner(process_number))[lost], signal.SIGKILL)
        if seed == 3:
            group.update(rows(8, seed), async_update=True, num_epochs=50)
            os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
            undisturbed.update(rows(8, seed), num_epochs=50)
        else:
            assert difference(group.update(rows(9, seed)), undisturbed.update(rows(9, seed))) is None
    assert difference(group.get_state(), undisturbed.get_state()) is None
    assert group.get_stats()["num_deaths_lifetime"] + undisturbed.get_stats()["num_deaths_lifetime"] in (1, 2)


@pytest.mark.slow
def test_a_learner_that_stands_still_is_replaced_at_the_deadline(made):
    group = made(deadline=8.0)  # of a busy machine too, none stands still for so long by itself
    os.kill(each(group.foreach_learner(process_number))[1], signal.SIGSTOP)
    assert len(group.update(rows(8))) == 2
    assert group.get_stats()["num_deaths_lifetime"] == 1


def test_learners_that_die_again_and_again_are_given_up_with_their_state(made):
    group = made(restarts=1)
    group.update(rows(8))
    state = group.get_state()
    with pytest.raises(RankLost, match=r"lost 2 times in a row \(learner [01] was killed by SIGKILL"):
        group.update({**rows(8), "kill": [0] * 7 + [1]})
    assert difference(group.get_state(), state) is None
    with pytest.raises(ConfigError, match="shut down"):
        group.update(rows(8), async_update=True)


def test_results_come_in_order_and_no_update_is_lost(made):
    group = made(1)
    results = []
    for seed in range(8):
        results += group.update(rows(seed + 1), async_update=True)
        assert group.get_stats()["num_updates_in_flight"] <= 3
    assert group.get_state()["learner"]["weights_seq_no"] == 8
    results += group.update(rows(9), async_update=True)
    assert [result["default_policy"]["num_module_steps_trained"] for result in results] == list(range(1, 9))


def test_updates_that_find_no_room_are_dropped_and_counted_if_asked(made):
    group = made(1)
    (pid,) = each(group.foreach_learner(process_number))
    os.kill(pid, signal.SIGSTOP)
    for _ in range(5):
        assert group.update(rows(4), async_update=True, full="drop") == []
    stats = group.get_stats()
    assert (stats["num_updates_in_flight"], stats["num_updates_dropped_lifetime"]) == (3, 2)
    os.kill(pid, signal.SIGCONT)
    assert group.get_state()["learner"]["weights_seq_no"] == 3
    assert len(group.update(rows(4), async_update=True, full="drop")) == 3


def test_what_cannot_be_trained_on_is_refused_and_the_group_lives_on(made):
    group, alone = made(), made(0)
    for data, told in [
        ({}, "got none"),
        ({"batch": rows(4), "episodes": [rows(4)]}, "batch and episodes"),
        ({"batch": {"defualt_policy": rows(4)}}, "did you mean 'default_policy'"),
        ({"batch": rows(4), "full": "dropp"}, "'wait' or 'drop'"),
        ({"batch": rows(4), "minibatch_size": -1}, "minibatch_size is -1"),
    ]:
        with pytest.raises(ValueError, match=told):
            group.update(**data)
    with pytest.raises(KeyError, match="no column 'target'"):
        group.update({Columns.OBS: rows(1)[Columns.OBS]})  # the first learner has no row, and waits
    with pytest.raises(NumericalError):
        group.update({**rows(4), "target": [np.nan, 0, 0, 0]})
    assert group.get_stats()["num_deaths_lifetime"] == 0
    group.update(rows(4))
    alone.update(rows(4))
    torch.testing.assert_close(group.get_weights(), alone.get_weights(), rtol=0, atol=1e-6)


def test_states_modules_and_folders_are_those_of_one_learner(made, tmp_path):
    group, alone = made(2, "a"), made(0, "a")
    group.add_module(module_id="b", module_spec=RLModuleSpec(Linear))
    alone.add_module(module_id="b", module_spec=RLModuleSpec(Linear))
    group.update({"b": rows(8)})
    group.save_to_path(tmp_path)
    alone.restore_from_path(tmp_path)
    assert difference(alone.get_state(), group.get_state()) is None
    (result, _) = group.update({"a": rows(8)}, return_state=True)
    assert difference(result["_rl_module_state_after_update"], group.get_weights()) is None
    with pytest.raises(RankLost):  # each time they begin again
        group.foreach_learner(end)
    assert difference(group.get_weights(), result["_rl_module_state_after_update"]) is None
    again = made(1, "a", "b")
    again.restore_from_path(tmp_path, component="rl_module/b")
    assert difference(again.get_weights(["b"]), alone.get_weights(["b"])) is None
    again.set_state(alone.get_state())
    again.remove_module("a")
    os.kill(each(again.foreach_learner(process_number))[0], signal.SIGKILL)
    assert set(each(again.foreach_learner(weights_of))[0]) == {"b"}


def test_settings_that_processes_do_not_take_are_refused():
    for settings in ({"num_gpus_per_learner": 1}, {"custom_resources_per_learner": {"big_memory": 1.0}}):
        with pytest.raises(NotSupportedError, match=r"on the CPUs of this host.*launcher='ray'"):
            LearnerGroup(config_of(1).learners(**settings))
    with pytest.raises(ConfigError, match="placement_group"):
        LearnerGroup(config_of(1).learners(launcher="processes"), placement_group=object())
    with pytest.raises(ConfigError, match="no spaces"):
        AlgorithmConfig(learner_class=Regression).learners(num_learners=2).build_learner_group()


@pytest.mark.slow
def test_learners_come_from_a_server_where_a_fork_is_not_safe():
    """A lock that another thread holds would be held for ever in a fork."""
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    config = PPOConfig().rl_module(model_config={"hidden": [4]})
    batch = {
        Columns.OBS: np.zeros((4, 4), np.float32),
        Columns.ACTIONS: np.array([0, 1, 1, 0]),
        **{name: np.ones(4) for name in (Columns.ACTION_LOGP, Columns.ADVANTAGES, Columns.VALUE_TARGETS)},
    }
    states = []
    for count in (0, 2):
        group = config.learners(num_learners=count).build_learner_group(env="CartPole-v1")
        assert len(group.update(batch)) == max(count, 1)
        states.append(group.get_weights())
        group.shutdown()
    stop.set()
    thread.join()
    torch.testing.assert_close(*states, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_learners_end_with_a_script_that_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal\n"
        "from rlcore import PPOConfig\n"
        "group = PPOConfig().learners(num_learners=2).build_learner_group(env='CartPole-v1')\n"
        "import multiprocessing\n"
        "print(*[child.pid for child in multiprocessing.active_children()], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    pids = [int(word) for word in ended.stdout.split()]
    assert len(pids) == 2
    until = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def test_learners_are_asked_by_any_function(made):
    group = made()
    factor = 3
    assert each(group.foreach_learner(lambda learner: factor * learner.group.rank)) == [0, 3]
    assert each(group.foreach_learner(lambda learner, by: by + learner.group.rank, by=5, remote_actor_ids=[1])) == [6]
    group.foreach_learner(lambda learner: setattr(learner, "asked", True), remote_actor_ids=[0])
    assert each(group.foreach_learner(lambda learner: hasattr(learner, "asked"))) == [True, False]
    with pytest.raises(ConfigError, match="the learners are 0 to 1"):
        group.foreach_learner(process_number, remote_actor_ids=[2])
    with pytest.raises(NotSupportedError, match="return_obj_refs"):
        group.foreach_learner(process_number, return_obj_refs=True)
    group.add_module(
        module_id="b", module_spec=RLModuleSpec(Linear), new_should_module_be_updated=lambda module_id, batch: True
    )
    results = group.update({"b": rows(4), "default_policy": rows(8)})
    assert all("b" in result for result in results)


def test_learners_that_take_longer_are_not_waited_for(made):
    group = made()
    assert each(group.foreach_learner(lambda learner: time.sleep(1) or 1, timeout_seconds=0.1)) == []
    assert each(group.foreach_learner(lambda learner: 2, timeout_seconds=30)) == [2, 2]
    some = each(group.foreach_learner(lambda learner: learner.group.rank or time.sleep(4) or 7, timeout_seconds=2))
    assert some == [1], "of who has answered by then"
    assert len(group.update(rows(8))) == 2
    lock = threading.Lock()
    with pytest.raises(TypeError, match="pickle"):
        group.foreach_learner(lambda learner: lock)
    assert each(group.foreach_learner(lambda learner: 3)) == [3, 3]


class Own(Regression):
    """Counts what a group calls."""

    def update(self, *args, **kwargs):
        self.metrics.log_value("updates", 1, reduce="sum")
        return super().update(*args, **kwargs)

    def postprocess_gradients(self, gradients_dict):
        self.metrics.log_value("processed", 1, reduce="sum")
        return super().postprocess_gradients(gradients_dict)


def test_overrides_are_called_in_other_processes_too(made):
    group, plain = LearnerGroup(config_of(2, learner_class=Own)), made()
    results = group.update(rows(8), minibatch_size=2, num_epochs=2)
    assert [(result["updates"], result["processed"]) for result in results] == [(1, 4), (1, 4)]
    plain.update(rows(8), minibatch_size=2, num_epochs=2)
    weights = [g.get_weights()["default_policy"]["net.weight"] for g in (group, plain)]
    np.testing.assert_allclose(*weights, rtol=0, atol=1e-6)
    group.shutdown()


def test_learners_share_the_steps_of_a_batch(made):
    results = made(2, "a", "b").update(MultiAgentBatch({"a": rows(6), "b": rows(3)}, env_steps=9))
    assert [result["__all_modules__"]["num_env_steps_trained"] for result in results] == [4, 5]
