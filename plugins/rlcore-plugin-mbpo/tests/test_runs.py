"""Small runs: stopped and resumed, and killed while the dynamics learn and while rollouts are imagined."""

import inspect
import re
from pathlib import Path

import pytest
import torch
from rlcore_plugin_testing import check_killed, check_resumed, make_trainer
from rlcore_plugin_testing.small_run import make_run

from rlcore.errors import StorageError
from rlcore.run.asked import ResumeOptions
from rlcore.training.loop import Loop

from .sections import around, offline, write_toy

ADAM = [{"use": "adam", "name": "all", "lr": 1e-2, "weight_decay": 0.1}]
TD3 = {
    **around(model={"actor": "deterministic", "termination": "never"}, buffer={"updates_per_batch": 3}),
    "loss": {"use": "sac:td3"},
}
RUNS = {
    "mbpo": around(buffer={"dynamics_every": 48, "rollouts_every": 32}, optimizer=ADAM),
    "td3, other clocks": {**TD3, "buffer": {**TD3["buffer"], "dynamics_every": {"updates": 5}, "storage": "memory"}},
    "penalty": around(buffer={"penalty": 0.5, "rollouts_every": {"iterations": 1}, "replay_ratio": 2.0}),
}
del RUNS["penalty"]["buffer"]["updates_per_batch"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_toy(tmp_path_factory.mktemp("data") / "toy")


def stopped(folder, sections):
    """Train a run in a folder to frame 32."""
    trainer = make_run(folder=folder, sections=sections).trainer
    trainer.stop_at = 32
    trainer.train()


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_stops_and_resumes_is_the_run_without_a_stop(name, tmp_path):
    """At frame 48 the rollouts of before are in use."""
    check_resumed(tmp_path, sections=RUNS[name], stop_at=48)


def test_a_run_on_a_dataset_that_stops_and_resumes_is_the_run_without_a_stop(data, tmp_path):
    """At update 16, between two trainings and between two rollouts."""
    check_resumed(tmp_path, sections=offline(data), stop_at=16)


def test_the_dynamics_learn_once_from_a_dataset_unless_an_interval_is_given(data):
    sections = offline(data)
    del sections["buffer"]["dynamics_every"]
    trainer, learned = make_run(sections=sections).trainer, []
    training = trainer.buffer._imagination._training
    trainer.buffer._imagination._training = lambda rows: learned.append(trainer.progress.updates) or training(rows)
    trainer.train()
    assert learned == [0]


def test_a_dataset_needs_no_env(data):
    """Its spaces are those of the data."""
    trainer = make_run(sections={**offline(data), "env": [], "evaluator": []}).trainer
    trainer.train()
    assert (trainer.progress.updates, trainer.progress.frames) == (40, 0)


def test_a_buffer_that_saves_no_rows_learns_and_imagines_again(tmp_path):
    """As a replay buffer it warms up again: 16 frames after the 32 of before."""
    sections = around(buffer={"save": "none", "dynamics_every": 1_000, "rollouts_every": 1_000})
    stopped(tmp_path, sections)
    resumed = make_run(folder=tmp_path, sections=sections, resume=True).trainer
    figures = []
    for progress in resumed:
        figures.append((progress.frames, "dynamics/error" in resumed.metrics.latest))
    assert figures[0] == (48, True)


def test_another_capacity_of_imagined_transitions_is_refused_by_its_key(tmp_path):
    stopped(tmp_path, around())
    with pytest.raises(StorageError, match=r"set \[buffer\] imagined_capacity = 50"):
        make_run(
            folder=tmp_path,
            sections=around(buffer={"imagined_capacity": 51}),
            resume=ResumeOptions(accept_changes=True),
        )


def test_the_optimizers_of_a_run_move_no_dynamics():
    """Not even one that decays every weight of the model."""
    trainer = make_trainer(sections=around(optimizer=ADAM, buffer={"dynamics_every": 10_000}))
    states = []
    for progress in trainer:
        if progress.frames >= 16:
            states.append([parameter.clone() for parameter in trainer.model.dynamics.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(states[0], states[-1], strict=True))
    assert trainer.progress.updates > 4


def test_from_ppo_to_mopo_section_by_section_it_is_one_loop(data):
    """Each run has some sections of the one before; which algorithm it is, no line of the loop says."""
    pytest.importorskip("rlcore_plugin_ppo")
    mbpo, mopo = around(), offline(data)
    steps = [
        {
            "env": mbpo["env"],
            "model": {"use": "mlp", "hidden": [8]},
            "loss": {"use": "ppo"},
            "estimator": {"use": "gae"},
        },
        {
            "model": mbpo["model"],
            "loss": mbpo["loss"],
            "estimator": [],
            "buffer": {"use": "replay", "warmup_frames": 16},
        },
        {"buffer": mbpo["buffer"]},
        {name: mopo[name] for name in ("run", "collector", "buffer", "evaluator")},
    ]
    sections, loops = {}, set()
    for step in steps:
        sections |= step
        trainer = make_trainer(sections=sections)
        trainer.train()
        assert trainer.progress.updates > 0
        loops.add(type(trainer).train)
    assert loops == {Loop.train}
    source = Path(inspect.getfile(Loop)).read_text()
    assert not re.findall(r"\b(?:ppo|sac|mbpo|mopo|imagined|dynamics|replay|dataset|offline)\b", source, re.IGNORECASE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mbpo", "mopo"])
def test_kills_while_the_dynamics_learn_and_while_rollouts_are_imagined_leave_a_run_equal(name, data, tmp_path):
    sections = {**(RUNS["mbpo"] if name == "mbpo" else offline(data)), "checkpoint": {"use": "torch", "every": 16}}
    epoch, step = "rlcore_plugin_mbpo.training:DynamicsTraining._epoch", "rlcore_plugin_mbpo.rollouts:_step"
    check_killed(tmp_path, sections, [(epoch, 5), (epoch, 1), (step, 2)])
