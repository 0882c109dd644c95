"""C: runs that learn two things at different paces are killed at random moments, and end as without the kills.

A hundred kills of a config of one's own: `rlcore prove CONFIG --kills 100`.
"""

from __future__ import annotations

import random

import pytest
from rlcore_plugin_testing.faults.chain import run_chain
from rlcore_plugin_testing.faults.killer import Strike

KILLS = 10


def adam(name, part, loss, every=1):
    return {"use": "adam", "name": name, "parameters": [part], "losses": [loss], "every": every}


def continuous(model, loss, every, with_temperature=True, **buffer):
    temperature = [adam("temperature", "temperature", "loss_temperature", every)] if with_temperature else []
    return {
        "env": {"use": "gymnasium", "id": "Pendulum-v1"},
        "model": {"hidden": [16], "random_frames": 80, **model},
        "loss": {"use": loss},
        "optimizer": [
            adam("critics", "critics", "loss_critics"),
            adam("actor", "actor", "loss_actor", every),
            *temperature,
        ],
        "buffer": {"use": "replay", "capacity": 200, **buffer},
    }


ACTOR_CRITIC = {"use": "sac:actor-critic"}
DETERMINISTIC = {**ACTOR_CRITIC, "actor": "deterministic"}
CROSSQ = {"use": "sac:crossq", "critic_hidden": [16], "norm_warmup": 50}
RAINBOW = {
    "model": {"use": "dqn:q-network", "hidden": [16], "quantiles": 8, "duelling": True, "noisy": True},
    "loss": {"use": "dqn:qr-dqn", "target_interval": 7},
    "buffer": {"use": "replay:prioritized", "capacity": 200, "n_steps": 3},
    "scheduler": [{"use": "linear", "target": "buffer.beta", "final": 2.0}],
}
RUNS = {
    "sac": continuous(ACTOR_CRITIC, "sac:sac", 1),
    "sac, mapped": continuous(ACTOR_CRITIC, "sac:sac", 3, storage="memmap"),
    "td3": continuous(DETERMINISTIC, "sac:td3", 2, with_temperature=False),
    "crossq": continuous(CROSSQ, "sac:crossq", 3),
    "qr-dqn, prioritized, noisy": RAINBOW,
}


def moments(draw, count):
    """Return where to strike: in the middle of updates, also between two steps of the actor, while saving, anywhere."""
    makes = (
        lambda: Strike(point="post_optim", count=draw.randint(1, 12)),
        lambda: Strike(event=draw.randint(8, 45)),
        lambda: Strike(after=draw.uniform(0, 0.05)),  # the whole run takes a few of these
    )
    return [draw.choice(makes)() for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_kills_at_random_moments_leave_an_off_policy_run_equal(jobs, references, equal, name):
    job = jobs.make("chain", "off-policy", **RUNS[name])
    attempts = run_chain(jobs.launcher, job, moments(random.Random(name), KILLS), seconds=120)
    assert sum(attempt.struck for attempt in attempts) >= KILLS // 2
    equal(job, references.reference("off-policy", **RUNS[name]))
