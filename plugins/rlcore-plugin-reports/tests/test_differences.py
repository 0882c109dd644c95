"""In what configs differ, and names made of that."""

from __future__ import annotations

from rlcore_plugin_reports.differences import ABSENT, differing, labels
from rlcore_plugin_reports.run_files import RunFiles, experiments


def labels_of(*folders):
    return list(labels(experiments([RunFiles(folder) for folder in folders])).values())


def adam(**keys):
    return [{"use": "core:adam", "name": "adam", "lr": 0.001, **keys}]


def test_keys_that_differ_come_with_every_value():
    configs = [{"loss": {"a": 1, "b": 2}}, {"loss": {"a": 1, "b": 3}, "more": True}]
    assert differing(configs) == {"loss.b": [2, 3], "more": [ABSENT, True]}
    assert differing(configs[:1] * 2) == {}


def test_settings_are_named_by_the_keys_that_differ(make_run):
    plain = make_run("plain", {1: [1.0]})
    clip = make_run("clip", {1: [1.0]}, loss={"use": "ppo:ppo", "clip_epsilon": 0.1}, optimizer=adam(lr=0.01))
    assert labels_of(plain, clip) == ["clip_epsilon=0.2, lr=0.001", "clip_epsilon=0.1, lr=0.01"]


def test_components_of_other_names_stand_for_their_keys(make_run):
    ppo = make_run("ppo", {1: [1.0]})
    dqn = make_run("dqn", {1: [1.0]}, loss={"use": "dqn:dqn", "gamma": 0.99, "huber": True})
    sgd = make_run("sgd", {1: [1.0]}, optimizer=[{"use": "core:sgd", "name": "sgd", "lr": 0.1}])
    assert labels_of(ppo, dqn) == ["ppo", "dqn"]
    assert labels_of(ppo, sgd) == ["adam", "sgd"]


def test_keys_of_the_same_last_part_are_told_apart(make_run):
    one = make_run("one", {1: [1.0]}, estimator={"gamma": 0.9}, learner={"gamma": 1.0})
    two = make_run("two", {1: [1.0]}, estimator={"gamma": 0.8}, learner={"gamma": 2.0})
    assert labels_of(one, two) == [
        "estimator.gamma=0.9, learner.gamma=1",
        "estimator.gamma=0.8, learner.gamma=2",
    ]


def test_settings_that_differ_in_much_go_by_the_names_of_their_runs(make_run):
    plain = [make_run(f"plain-seed-{seed}", {1: [1.0]}, seed=seed) for seed in (1, 2)]
    loss = {"use": "ppo:ppo", "clip_epsilon": 0.1, "a": 1, "b": 2, "c": 3}
    other = make_run("other", {1: [1.0]}, loss=loss)
    assert labels_of(*plain, other) == ["plain", "other"]
    assert labels_of(*plain) == ["plain"], "and so does one alone"
    assert labels_of(other) == ["other"]


def test_what_is_added_to_a_setting_is_named(make_run):
    plain = make_run("plain", {1: [1.0]})
    clipped = make_run("clipped", {1: [1.0]}, hook=[{"use": "core:reward-clip", "name": "reward-clip", "low": -1}])
    assert labels_of(plain, clipped) == ["as configured", "reward-clip"]
