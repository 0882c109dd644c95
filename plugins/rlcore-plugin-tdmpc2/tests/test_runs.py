"""Small runs: stopped and resumed, compiled, exported, over short episodes; and what is refused."""

import shutil

import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_trainer

from rlcore.errors import ConfigError

from .sections import AROUND, BUFFER, MODEL


def around(model=None, **sections):
    return {**AROUND, "model": {**MODEL, **(model or {})}, **sections}


@pytest.mark.parametrize("random_frames", [0, 42])
def test_a_run_resumes_to_the_bit(random_frames, tmp_path):
    """With plans, replayed sequences and the scale of values; the one in the middle of its random frames."""
    check_resumed(tmp_path, sections=around({"random_frames": random_frames}))


def test_the_first_frames_are_uniform_and_the_next_are_planned():
    trainer = make_trainer(sections=around({"random_frames": 5}))
    policy = trainer.model.policy
    noise = policy.draw(4, 2, torch.Generator().manual_seed(0))
    is_random = noise[..., -1]
    assert is_random.tolist() == [[1, 1], [1, 1], [1, 0], [0, 0]]
    observation, state, first = torch.ones(2, 4), policy.initial_state(2), torch.zeros(2, dtype=torch.bool)
    observation = observation[:, :1].expand(2, trainer.model.encoder.layers[0].weight.shape[1])
    with torch.inference_mode():
        action, _, following = policy.act(observation, noise[2], state, first)
    assert torch.equal(action[0], noise[2, 0, :2])
    assert not torch.equal(action[1], noise[2, 1, :2])
    assert not following[0].any()
    assert following[1].any()


def test_episodes_shorter_than_the_horizon_are_trained_on():
    trainer = make_trainer(sections=around(env={**AROUND["env"], "episode_lengths": [1, 2]}))
    before = trainer.model.dynamics.layers[0].weight.clone()
    trainer.train()
    assert all(value.isfinite().all() for value in trainer.model.state_dict().values())
    assert not torch.equal(before, trainer.model.dynamics.layers[0].weight)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_the_compiled_update_is_the_eager_one():
    """With dropout; compiling takes two minutes of a processor."""
    results = []
    for compiled in ("false", "true"):
        trainer = make_trainer(f"learner.compile={compiled}", "learner.max_grad_norm=20.0", sections=around())
        trainer.train()
        results.append(trainer.model.state_dict())
    for name, value in results[0].items():
        torch.testing.assert_close(results[1][name], value, atol=1e-5, rtol=1e-4)


def test_rewards_of_several_steps_are_refused():
    trainer = make_trainer(sections=around({"gamma": 0.9}, buffer={**BUFFER, "n_steps": 2, "gamma": 0.9}))
    with pytest.raises(ConfigError, match="the loss tdmpc2 learns the reward of one step; set n_steps = 1"):
        trainer.train()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"latent_size": 10}, "latent_size = 10 must be a multiple of simplex = 4"),
        ({"prior_samples": 24}, "prior_samples = 24 must be less than samples = 24"),
        ({"elites": 25}, "elites = 25 must be at most samples = 24"),
        ({"std_min": 3.0}, "std_min = 3.0 must be at most std_max = 2.0"),
        ({"log_std_min": 2.0}, "log_std_min = 2.0 must be less than log_std_max = 2.0"),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys, message):
    with pytest.raises(ConfigError, match=message):
        make_trainer(sections=around(keys))


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"use": "testing:toy", "actions": "discrete"}, "tdmpc2 needs actions in a Box of floats"),
        ({"use": "testing:toy-pixels", "actions": "bounded"}, "tdmpc2 takes observations in a Box of one dimension"),
    ],
    ids=["actions", "observations"],
)
def test_spaces_that_do_not_fit_are_refused(env, message):
    with pytest.raises(ConfigError, match=message):
        make_trainer(sections=around(env=env))


def test_a_batch_whose_noise_takes_too_much_memory_is_refused():
    trainer = make_trainer(sections=around())
    with pytest.raises(ConfigError, match="collect fewer frames per batch, or lower"):
        trainer.model.policy.draw(10**7, 2, torch.Generator())


@pytest.mark.parametrize(
    ("episode", "gamma"), [(None, 0.99), (50, 0.95), (200, 0.975), (500, 0.99), (10_000, 0.995)], ids=str
)
def test_the_discount_follows_from_the_length_of_episodes(episode, gamma):
    from rlcore_plugin_tdmpc2.model import _gamma

    assert _gamma(episode) == pytest.approx(gamma)
