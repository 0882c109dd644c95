"""Envs of tensors on the pretend device: what an iteration copies; in a process of its own, as `on_the_device.py`."""

import itertools

import pytest
import torch
from rlcore_plugin_testing.pretend_device import NAME, counted

from rlcore import hookimpl
from rlcore.errors import EnvError, NumericalError
from tests.pretend_device.on_the_device import run_of

# copies to the host, copies to the device, waits; with a row, whether all was finite, the episodes, and the row
QUIET, ASKED = (0, 0, 0), (3, 0, 0)
ON_POLICY = {
    "ppo": {"model": {"use": "mlp", "hidden": [8]}, "loss": {"use": "ppo"}},
    "ppo-standardised": {
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "ppo"},
        "estimator": {"use": "ppo:gae", "standardise": True, "every": "epoch"},
    },
    "ppo-normalised": {
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "ppo"},
        "transform": [{"use": f"transforms:{name}"} for name in ("running-observation-norm", "reward-norm")],
    },
    "ppo-lstm": {
        "model": {"use": "recurrent:lstm", "size": 8},
        "loss": {"use": "ppo"},
        "buffer": {"use": "rollout-sequences", "epochs": 2, "minibatch_size": 16, "sequence_length": 4},
    },
    "vtrace": {
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "ppo:ppo"},
        "estimator": {"use": "vtrace:vtrace"},
    },
    "pqn": {"model": {"use": "pqn:normed-q-network", "hidden": [8]}, "loss": {"use": "pqn:pqn"}},
    "pqn-lstm": {
        "transform": [{"use": "transforms:last-step"}],
        "model": {"use": "pqn:recurrent-normed-q-network", "size": 8, "encoder_hidden": [8]},
        "loss": {"use": "pqn:pqn"},
        "buffer": {"use": "rollout-sequences", "epochs": 2, "minibatch_size": 16, "sequence_length": 4},
    },
}


def with_envs_of_tensors(algorithm="ppo", device=NAME, num_envs=4, hooks=(), folder=None, resume=False, **sections):
    """Return a run of iterations of 64 frames, with a row of metrics after every second one."""
    values = {
        "run": {"total_frames": 512, "name": "small"},
        "env": {"use": "torch-envs", "id": "CartPole-v1", "num_envs": num_envs, "max_episode_steps": 11},
        "estimator": {"use": "ppo:gae"},
        "optimizer": [{"use": "adam"}],
        "collector": {"use": "device", "frames_per_batch": 64},
        "buffer": {"epochs": 2, "minibatch_size": 16},
        "metrics": {"every": 128},
        **ON_POLICY[algorithm],
        **sections,
    }
    return run_of(values, resume=resume, folder=folder, device=device, hooks=hooks).trainer


def rows_of(trainer):
    """Return the rows of metrics that are written from here on, without what the clock says."""
    rows, write = [], trainer.metrics.write

    def written(progress):
        write(progress)
        row = {name: value for name, value in trainer.metrics.latest.items() if not name.startswith("time/")}
        rows.append((progress.now, row))

    trainer.metrics.write = written
    return rows


@pytest.mark.parametrize("num_envs", [1, 4])
@pytest.mark.parametrize("algorithm", ON_POLICY)
def test_an_iteration_asks_the_host_nothing(algorithm, num_envs):
    """It copies nothing to the host or back, but for a row of metrics, and its numbers are those of the CPU."""
    there, here = (with_envs_of_tensors(algorithm, device, num_envs) for device in (NAME, "cpu"))
    rows, expected = rows_of(there), rows_of(here)
    iterations, found = iter(there), []
    while not there.done:
        with counted() as copies:
            next(iterations)
        found.append((copies.to_host, copies.to_device, copies.waits))
    assert list(iterations) == []
    here.train()
    # the first iteration begins the envs, and looks at the actions and the optimizer once
    assert found[1:] == [ASKED, QUIET, ASKED, QUIET, ASKED, QUIET, ASKED]
    weights = there.parts.stateful["model"].state_dict()
    for name, value in here.parts.stateful["model"].state_dict().items():
        assert torch.equal(weights[name].cpu(), value), name
    assert rows == expected
    assert rows[0][1]["episode/return/count"] > 4
    assert there.progress.episodes == here.progress.episodes > 30


def test_a_hook_that_is_told_of_episodes_hears_of_each_in_its_iteration():
    heard = {}

    class Listens:
        @hookimpl
        def episode_end(self, episode, trainer):
            device = next(iter(trainer.model.parameters())).device.type
            heard.setdefault(device, []).append((trainer.progress.frames, episode))

    for device in (NAME, "cpu"):
        with_envs_of_tensors(device=device, hooks=[Listens()]).train()
    assert heard[NAME] == heard["cpu"]
    assert len({frames for frames, _ in heard["cpu"]}) == 8


def spoil_step(trainer):
    """Let the third iteration have a step that is not finite."""

    def spoilt(batch):
        if trainer.progress.iterations == 2:
            batch.set("advantage", batch.get("advantage") * float("nan"))

    trainer.register_op("pre_epoch", spoilt)


def spoil_reward(trainer):
    """Let the third batch have a reward that is not finite."""
    env, steps = trainer.parts.collector._env, itertools.count()
    step_tensors = env.step_tensors

    def spoilt(action):
        step = step_tensors(action)
        return step._replace(reward=step.reward / (next(steps) != 40))

    env.step_tensors = spoilt


@pytest.mark.parametrize(
    ("spoil", "error", "expected"),
    [
        (spoil_step, NumericalError, "steps up to iteration 3 had a loss or gradient that is not finite"),
        (spoil_reward, EnvError, "the batch that began at frame 128 is not finite"),
    ],
)
@pytest.mark.parametrize("every", ["row", "checkpoint"])
def test_what_is_not_finite_is_found_before_anything_is_said_or_saved(spoil, error, expected, every, tmp_path):
    often, never = {"every": 256}, {"every": 10_000}
    sections = {"metrics": often if every == "row" else never, "checkpoint": never if every == "row" else often}
    trainer = with_envs_of_tensors(folder=tmp_path, **sections)
    trainer.saving.last_good = None  # which looks too, at a time of its own
    spoil(trainer)
    with pytest.raises(error, match=expected):
        trainer.train()
    assert trainer.progress.frames in (192, 256)
    assert trainer.saver.saved_at == 0
