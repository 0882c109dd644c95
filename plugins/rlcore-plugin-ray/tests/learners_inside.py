"""Tests of groups of learners, which run where a real Ray is: with the address of one in RLCORE_TEST_RAY."""

import os
import signal
import time

import pytest
import ray
from ray.util.placement_group import placement_group, remove_placement_group
from rlcore_plugin_testing.compare import difference

from rlcore import Columns, LearnerGroup, RLModuleSpec
from rlcore.errors import ConfigError, RankLost
from tests import regression
from tests.regression import Linear, rows


def config_of(num_learners, **settings):
    return regression.config_of().learners(num_learners=num_learners, **{"num_cpus_per_learner": 0.1, **settings})


def each(answers):
    """Return what each learner returned."""
    return [answer.get() for answer in answers]


def process_number(learner):
    return os.getpid()


def is_actor(learner):
    return ray.is_initialized()


@pytest.fixture(scope="module", autouse=True)
def connected():
    ray.init(address=os.environ["RLCORE_TEST_RAY"], log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def made():
    groups = []

    def make(num_learners=2, launcher="auto", group_of=None, deadline=60.0, restarts=3, **settings):
        config = config_of(num_learners, launcher=launcher, **settings)
        groups.append(LearnerGroup(config, placement_group=group_of, deadline=deadline, restarts=restarts))
        return groups[-1]

    yield make
    for group in groups:
        group.shutdown()


def trained(group, strike=lambda seed: None):
    """Return the results and the state after some updates."""
    results = []
    for seed in range(4):
        strike(seed)
        results.append(group.update(rows(9, seed), num_epochs=2, minibatch_size=2, shuffle_batch_per_epoch=True))
    return results, group.get_state()


@pytest.mark.parametrize("count", [1, 2])
def test_actors_train_as_processes_do_to_the_bit_and_leave_nothing(made, count):
    actors, processes = made(count), made(count, launcher="processes")
    assert each(actors.foreach_learner(is_actor)) == [True] * count
    assert difference(trained(actors), trained(processes)) is None
    assert (len(actors), actors.is_remote) == (count, True)
    pids = each(actors.foreach_learner(process_number))
    assert len({os.getpid(), *pids}) == count + 1
    actors.shutdown()
    actors.shutdown()
    until = time.monotonic() + 20
    while (left := [pid for pid in pids if os.path.exists(f"/proc/{pid}")]) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left
    assert ray.is_initialized(), "the Ray of the script is left as it is"
    with pytest.raises(ConfigError, match="shut down"):
        actors.update(rows(4))


def test_actors_that_are_killed_or_stopped_cost_time_alone(made):
    actors = made(deadline=8.0)

    def strike(seed):
        if seed in (1, 3):
            os.kill(
                each(actors.foreach_learner(process_number))[seed // 2],
                signal.SIGKILL if seed == 1 else signal.SIGSTOP,
            )

    assert difference(trained(actors, strike), trained(made(launcher="processes"))) is None
    assert actors.get_stats()["num_deaths_lifetime"] == 2


def test_actors_that_die_again_and_again_are_given_up_with_their_state(made):
    group = made(restarts=0)
    group.update(rows(8))
    state = group.get_state()
    with pytest.raises(RankLost, match=r"lost 1 times in a row \(learner 1 is gone with its actor of Ray"):
        group.update({**rows(8), "kill": [0] * 7 + [1]})
    assert difference(group.get_state(), state) is None


def test_learners_of_several_hosts_are_connected_by_sockets(made, monkeypatch):
    """With two of them the sums are those of shared memory to the bit; one that fails does not hold up the other."""
    expected = trained(made(launcher="processes"))
    monkeypatch.setattr("rlcore_plugin_ray.learners.best", lambda: "gloo")
    actors = made(deadline=8.0)

    def strike(seed):
        if seed == 2:
            os.kill(each(actors.foreach_learner(process_number))[1], signal.SIGSTOP)

    assert difference(trained(actors, strike), expected) is None
    with pytest.raises(KeyError, match="no column 'target'"):
        actors.update({Columns.OBS: rows(1)[Columns.OBS]})  # the first learner has no row, and waits
    assert difference(actors.get_state(), expected[1]) is None


def test_asynchronous_updates_come_in_order(made):
    group, results = made(1), []
    for seed in range(6):
        results += group.update(rows(seed + 1), async_update=True)
    assert group.get_state()["learner"]["weights_seq_no"] == 6
    results += group.update(rows(7), async_update=True)
    counts = [result["default_policy"]["num_module_steps_trained"] for result in results]
    assert counts == list(range(1, len(counts) + 1))
    assert len(counts) >= 6


def test_actors_are_asked_by_any_function(made):
    group, factor = made(), 3
    assert each(group.foreach_learner(lambda learner: factor * learner.group.rank, healthy_only=False)) == [0, 3]
    assert each(group.foreach_learner(lambda learner, by: by + learner.group.rank, by=5, remote_actor_ids=[1])) == [6]
    slow = each(group.foreach_learner(lambda learner: learner.group.rank * time.sleep(3) or 7, timeout_seconds=1.5))
    assert slow in ([7], [])
    with pytest.raises(RuntimeError, match="division by zero"):
        group.foreach_learner(lambda learner: 1 / 0)
    assert len(group.update(rows(8))) == 2


def test_states_and_folders_are_those_of_other_groups(made, tmp_path):
    actors, alone = made(), made(0)
    batches = [ray.put(rows(8, seed)) for seed in range(2)]
    actors.update(batch_refs=batches)
    actors.add_module(module_id="b", module_spec=RLModuleSpec(Linear))
    alone.add_module(module_id="b", module_spec=RLModuleSpec(Linear))
    actors.save_to_path(tmp_path)
    alone.restore_from_path(tmp_path)
    assert difference(alone.get_state(), actors.get_state()) is None
    actors.set_state(alone.get_state())
    os.kill(each(actors.foreach_learner(process_number))[0], signal.SIGKILL)
    assert (
        difference(alone.get_state(), {"learner": each(actors.foreach_learner(lambda one: one.get_state()))[1]}) is None
    )


def test_actors_take_what_the_config_says(made):
    bundles = placement_group([{"CPU": 0.25}] * 2)
    ray.get(bundles.ready())
    try:
        placed = made(group_of=bundles, num_cpus_per_learner=0.25)
        found = each(placed.foreach_learner(lambda learner: ray.get_runtime_context().get_placement_group_id()))
        assert found == [bundles.id.hex()] * 2
        used = each(placed.foreach_learner(lambda learner: ray.get_runtime_context().get_assigned_resources()))
        assert [{name.partition("_")[0]: amount for name, amount in one.items()} for one in used] == [{"CPU": 0.25}] * 2
        placed.shutdown()
    finally:
        remove_placement_group(bundles)
    own = made(1, custom_resources_per_learner={"big_memory": 1.0})
    (used,) = each(own.foreach_learner(lambda learner: ray.get_runtime_context().get_assigned_resources()))
    assert used == {"CPU": 0.1, "big_memory": 1.0}


def test_what_ray_cannot_give_is_said(made, monkeypatch):
    monkeypatch.setattr("rlcore_plugin_ray.learners.WAIT", 0.5)
    for settings, told in [
        ({"num_cpus_per_learner": 500}, "1000 CPU are needed, and the cluster of Ray has"),
        ({"custom_resources_per_learner": {"CPU": 1}}, "num_cpus_per_learner"),
        ({"custom_resources_per_learner": {"big_memory": -1.0}}, "greater than 0"),
        ({"launcher": "processes", "custom_resources_per_learner": {"big_memory": 1.0}}, "launcher='ray'"),
        ({"launcher": "processes", "num_gpus_per_learner": 1}, "launcher='ray'"),
        ({"launcher": "rya"}, "did you mean 'ray'"),
    ]:
        with pytest.raises((ConfigError, NotImplementedError), match=told):
            made(**settings)
