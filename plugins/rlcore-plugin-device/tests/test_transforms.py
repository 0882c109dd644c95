"""Transforms of tensors: the numbers of the same transforms of arrays."""

import numpy as np
import pytest
import torch

from rlcore.errors import ConfigError, EnvError

from .runs import run_of

RUNNING, FIXED, REWARD = (
    {"use": f"transforms:{name}"} for name in ("running-observation-norm", "observation-norm", "reward-norm")
)
CHAINS = {
    "running": [{**RUNNING, "clip": 1.5}],
    "fixed, then running": [{"use": "gymnasium:observation-norm"}, RUNNING],
    "rewards": [{**REWARD, "clip": 0.5}, {"use": "transforms:reward-scale", "scale": 3.0}],
    "last step": [RUNNING, {"use": "transforms:last-step"}],
    "last step before action scale": [{"use": "transforms:last-step"}, {"use": "transforms:action-scale"}],
    "all": [{"use": "transforms:flatten"}, RUNNING, REWARD, {"use": "transforms:action-scale"}],
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_batches_are_those_of_local(chain):
    local, device = (run_of(use, chain) for use in ("local", "device"))
    for _ in zip(local, device, strict=True):
        keys = list(local.batch.keys(include_nested=True, leaves_only=True))
        assert list(device.batch.keys(include_nested=True, leaves_only=True)) == keys
        for key in keys:
            torch.testing.assert_close(device.batch[key], local.batch[key], rtol=1e-3, atol=1e-4, msg=str(key))
    assert local.batch["next", "truncated"].any()
    for transform, other in zip(local.parts.transforms, device.parts.transforms, strict=True):
        if not hasattr(transform, "state_dict"):
            continue
        assert_same(other.state_dict(), transform.state_dict())
        other.load_state_dict(transform.state_dict())  # as where a run goes on with the other collector
        assert_same(other.state_dict(), transform.state_dict(), exact=True)


@pytest.mark.parametrize("memory", [False, True])
def test_the_last_of_numbered_actions_is_seen_as_by_local(memory):
    """Episodes end, where they begin there are zeros, and a policy with memory goes on the same."""
    sections = {"env": {"use": "torch-envs", "id": "CartPole-v1", "num_envs": 4}}
    if memory:
        sections |= {
            "model": {"use": "recurrent:lstm", "size": 8},
            "buffer": {"use": "rollout-sequences", "sequence_length": 4, "minibatch_size": 16},
        }
    local, device = (run_of(use, [{"use": "transforms:last-step"}], sections=sections) for use in ("local", "device"))
    for _ in zip(local, device, strict=True):
        torch.testing.assert_close(device.batch["observation"], local.batch["observation"], rtol=1e-3, atol=1e-4)
        final = ("next", "observation")
        torch.testing.assert_close(device.batch[final], local.batch[final], rtol=1e-3, atol=1e-4)
    action, done = (device.batch[key][:, :-1] for key in ("action", ("next", "done")))
    expected = torch.nn.functional.one_hot(action, 2) * ~done
    assert torch.equal(device.batch["observation"][:, 1:, 4:6], expected.float())
    assert done.any()


def assert_same(found, expected, exact=False):
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name, value in expected.items():
            assert_same(found[name], value, exact)
    else:
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-5)


@pytest.mark.parametrize(
    ("name", "transforms"), [("all", ["running-observation-norm", "reward-norm"]), ("last step", [])]
)
def test_a_resume_goes_on_exactly(name, transforms, tmp_path):
    whole = run_of("device", CHAINS[name])
    whole.train()
    first = run_of("device", CHAINS[name], folder=tmp_path)
    first.stop_at = 256
    first.train()
    resumed = run_of("device", CHAINS[name], folder=tmp_path, resume=True)
    resumed.train()
    for part in ("model", *(f"transform.{transform}" for transform in transforms)):
        found, expected = (trainer.parts.stateful[part].state_dict() for trainer in (resumed, whole))
        assert_same(found, expected, exact=True)


@pytest.mark.parametrize(
    "transform",
    [
        {"use": "transforms:frame-stack", "frames": 2},
        {"use": "transforms:time-feature"},
    ],
)
def test_one_of_arrays_alone_is_refused(transform):
    with pytest.raises(ConfigError, match="works on arrays"):
        run_of("device", [transform])


@pytest.mark.slow
def test_actions_are_changed_within_a_compiled_step():
    eager, compiled = (run_of("device", CHAINS["all"], compile=compile) for compile in (False, True))
    next(iter(eager)), next(iter(compiled))
    for key in eager.batch.keys(include_nested=True, leaves_only=True):
        torch.testing.assert_close(compiled.batch[key], eager.batch[key], rtol=1e-3, atol=1e-4)


def test_an_observation_that_a_transform_would_clip_is_found_all_the_same():
    trainer = run_of("device", [{**RUNNING, "clip": 1.0}])
    env = trainer.parts.collector._env
    step_tensors = env.step_tensors

    def infinite(action):
        step = step_tensors(action)
        return step._replace(final_observation=step.final_observation / 0.0)

    env.step_tensors = infinite
    with pytest.raises(EnvError, match="not finite; the batch is discarded"):
        trainer.train()
