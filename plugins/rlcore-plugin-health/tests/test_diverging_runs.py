"""Real runs that go wrong are warned of, with the key to change; the same runs with that key are not."""

import logging
import re
import tomllib
from pathlib import Path

import pytest

import rlcore

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = ("model.hidden=[32, 32]", "buffer.minibatch_size=32", "buffer.warmup_frames=200")
FAST = (*SMALL, "optimizer.0.lr=2e-3", "evaluator.every=1_000_000")
# name of the check: the example, what makes it go wrong, and what the warning says to change
RUNS = {
    "linear-error": (
        "dqn-cartpole",
        [
            *FAST,
            *("run.total_frames=9_000", "metrics.every=500", "collector.frames_per_batch=10"),
            *(
                "buffer.updates_per_batch=1",
                "loss.double=false",
                "loss.target_interval=20",
                "model.epsilon_fraction=1.0",
            ),
        ],
        ["loss.error='smooth_l1'"],
        r'q_value is \d+ on average, and no return can be above 100.*Set \[loss\] error = "l2"',
        ["loss.error='l2'"],
    ),
    "support": (
        "c51-cartpole",
        [*FAST, "run.total_frames=4_000", "metrics.every=250", "loss.target_interval=10", "model.atoms=21"],
        ["model.v_min=-5", "model.v_max=5"],
        r"q_value is 4\.\d+ on average.*Set \[model\] v_max = 100,",
        ["model.v_min=-5", "model.v_max=100"],
    ),
    "clipping": (
        "ppo-cartpole",
        ["run.total_frames=6_000", "metrics.every=512", "evaluator.every=1_000_000"],
        [{"use": "transforms:reward-scale", "scale": 100.0}],
        r'the policy stands still.*max_grad_norm = 0\.5 leaves one part in \d+.*"transforms:reward-norm"',
        [{"use": "transforms:reward-scale", "scale": 100.0}, {"use": "transforms:reward-norm"}],
    ),
    "reward-scale": (
        "sac-pendulum",
        [*SMALL, "model.random_frames=200", "run.total_frames=2_500", "metrics.every=200", "evaluator.every=1_000_000"],
        [{"use": "transforms:reward-scale", "scale": 1000.0}],
        r"entropy is -\d\S+ and falls short of target_entropy = -1.*scale = 0\.0006",
        [{"use": "transforms:reward-scale", "scale": 0.6}],
    ),
}


def warnings_of(example, settings, changes, caplog):
    """Train an example with changes, of settings or of the transforms, and return what health says."""
    caplog.set_level(logging.WARNING)
    caplog.clear()
    overrides = [change for change in changes if isinstance(change, str)]
    raw = tomllib.loads((EXAMPLES / f"{example}.toml").read_text())
    raw["transform"] = [change for change in changes if not isinstance(change, str)]
    config = rlcore.load_config(raw, [*settings, *overrides, "hook.0.use=health"])
    rlcore.build(config, write=False).trainer.train()
    return [record.message for record in caplog.records if record.message.startswith("health")]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_goes_wrong_is_warned_of_and_the_change_helps(name, caplog):
    example, settings, wrong, words, right = RUNS[name]
    messages = warnings_of(example, settings, wrong, caplog)
    assert [message for message in messages if re.search(words, message)], messages
    messages = warnings_of(example, settings, right, caplog)
    assert not [message for message in messages if re.search(words, message)]
