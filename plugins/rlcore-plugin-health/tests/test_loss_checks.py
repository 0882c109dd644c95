"""What a loss says of itself: the checks it brings, when they count, and how a config leaves them out."""

import pytest
from rlcore_plugin_dqn.health import growing_values, narrow_support
from rlcore_plugin_health.loss_checks import checks_of, lasting
from rlcore_plugin_ppo.health import crowded_out
from rlcore_plugin_sac.health import outweighed_entropy

from rlcore.errors import ConfigError


def test_a_loss_without_checks_has_none():
    assert checks_of(object()) == {}
    assert checks_of(None) == {}


def test_a_message_counts_once_it_was_there_for_two_rows_in_succession():
    succession = {}
    messages = ["a", None, "b", "c"]
    assert [lasting("check", message, succession) for message in messages] == [None] * 3 + ["c"]


def test_a_name_that_no_check_has_is_refused_before_the_first_frame(build):
    with pytest.raises(ConfigError, match=r"ignore names 'kll'; the checks of this run are .*\bkl\b.*, clipping"):
        build(hook=[{"use": "health", "ignore": ["kll"]}])
    build(hook=[{"use": "health", "ignore": ["kl", "clipping"]}])


@pytest.mark.parametrize(
    ("value", "reward", "error", "gamma", "warns"),
    [
        (160.0, 1.0, "smooth_l1", 0.99, True),
        (-160.0, 1.0, "l1", 0.99, True),
        (140.0, 1.0, "smooth_l1", 0.99, False),
        (160.0, 1.0, "l2", 0.99, False),
        (160.0, 2.0, "smooth_l1", 0.99, False),
        (160.0, 0.0, "smooth_l1", 0.99, False),
        (160.0, 1.0, "smooth_l1", 1.0, False),
    ],
)
def test_values_that_grow_under_a_linear_error(value, reward, error, gamma, warns):
    message = growing_values({"train/q_value": value}, reward, gamma=gamma, error=error)
    assert (message is not None) is warns
    if message:
        assert 'Set [loss] error = "l2"' in message
        assert "scale = 0.01" in message


@pytest.mark.parametrize(
    ("value", "reward", "low", "high", "words"),
    [
        (9.5, 1.0, -10.0, 10.0, "Set [model] v_max = 100"),
        (-9.5, 1.0, -10.0, 10.0, "Set [model] v_min = -100"),
        (8.5, 1.0, -10.0, 10.0, None),
        (99.0, 1.0, -100.0, 100.0, None),
        (9.5, 0.1, -10.0, 10.0, None),
        (0.0, 1.0, 0.0, 10.0, "Set [model] v_min = -100"),
    ],
)
def test_values_at_an_end_of_the_support(value, reward, low, high, words):
    message = narrow_support({"train/q_value": value}, reward, gamma=0.99, v_min=low, v_max=high)
    assert message is None if words is None else words in message


@pytest.mark.parametrize(
    ("norm", "divergence", "limit", "warns"),
    [
        (2400.0, 2e-5, 0.5, True),
        (35.0, 4e-5, 0.5, False),
        (2400.0, 1e-3, 0.5, False),
        (2400.0, 2e-5, None, False),
    ],
)
def test_a_policy_that_the_clipped_gradients_of_the_critic_hold(norm, divergence, limit, warns):
    row = {"train/grad_norm": norm, "train/kl_approx": divergence, "train/loss_critic": 3e5}
    message = crowded_out(row, 100.0, max_grad_norm=limit)
    assert (message is not None) is warns
    if message:
        assert "max_grad_norm = 0.5 leaves one part in 4800" in message
        assert '"transforms:reward-norm"' in message


@pytest.mark.parametrize(
    ("entropy", "temperature", "reward", "warns"),
    [
        (-1.5, 3.0, 1600.0, True),
        (-1.2, 3.0, 1600.0, False),
        (-1.5, 0.9, 1600.0, False),
        (-1.5, 3.0, 16.0, False),
    ],
)
def test_an_entropy_that_rewards_outweigh(entropy, temperature, reward, warns):
    row = {"train/entropy": entropy, "train/temperature": temperature}
    message = outweighed_entropy(row, reward, target_entropy=-1.0, size=1)
    assert (message is not None) is warns
    if message:
        assert 'use = "transforms:reward-scale", scale = 0.006' in message


@pytest.mark.parametrize("check", ["growing", "support", "clipping", "entropy"])
def test_a_row_without_the_figures_says_nothing(check):
    calls = {
        "growing": lambda: growing_values({}, 1.0, gamma=0.99, error="l1"),
        "support": lambda: narrow_support({}, 1.0, gamma=0.99, v_min=-1, v_max=1),
        "clipping": lambda: crowded_out({}, 1.0, max_grad_norm=0.5),
        "entropy": lambda: outweighed_entropy({}, 1e3, target_entropy=-1, size=1),
    }
    assert calls[check]() is None
