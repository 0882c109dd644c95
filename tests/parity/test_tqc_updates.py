"""TQC learns what that of sb3-contrib learns: from a model of theirs, the same minibatches and the same noise."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

contrib = pytest.importorskip("sb3_contrib", reason="pip install rlcore[parity]")

from rlcore_plugin_import.importing import import_model  # noqa: E402
from stable_baselines3.common.logger import configure  # noqa: E402

import rlcore  # noqa: E402

SAMPLES, UPDATES = 16, 5
SETTINGS = {
    "learning_starts": 20,
    "batch_size": SAMPLES,
    "policy_kwargs": {"net_arch": [16], "n_quantiles": 7, "n_critics": 3},
}


class Minibatches:
    """Hands minibatches to their `train`."""

    def __init__(self, minibatches):
        self._rest = iter(minibatches)

    def sample(self, batch_size, env=None):
        entries = next(self._rest)
        return SimpleNamespace(
            observations=entries["observation"],
            actions=entries["action"] / 2,  # theirs are scaled to [-1, 1], Pendulum's are not
            next_observations=entries["next", "observation"],
            rewards=entries["next", "reward"],
            dones=entries["next", "terminated"].float(),
            discounts=None,
        )


def made_up(generator):
    return {
        "observation": torch.randn(SAMPLES, 3, generator=generator),
        "action": 4 * torch.rand(SAMPLES, 1, generator=generator) - 2,
        ("next", "observation"): torch.randn(SAMPLES, 3, generator=generator),
        ("next", "reward"): torch.randn(SAMPLES, 1, generator=generator),
        ("next", "terminated"): torch.rand(SAMPLES, 1, generator=generator) < 0.3,
    }


def outputs(here, there):
    """Return pairs of what the networks of both say of the same observations and actions."""
    rows, unit = torch.linspace(-2, 2, 30).view(10, 3), torch.linspace(-1, 1, 10).view(10, 1)
    policy = there.policy
    with torch.no_grad():
        return [
            (here.critics.values(rows, unit), policy.critic(rows, unit).transpose(0, 1)),
            (here.target_critics.values(rows, unit), policy.critic_target(rows, unit).transpose(0, 1)),
            (here.actor(rows), torch.cat(policy.actor.get_action_dist_params(rows)[:2], -1)),
            (here.temperature.log_alpha.reshape(1), there.log_ent_coef),
        ]


@pytest.mark.parametrize("dropped", [0, 2])
def test_updates_are_those_of_sb3_contrib(dropped, workdir, monkeypatch):
    theirs = contrib.TQC(
        "MlpPolicy",
        "Pendulum-v1",
        top_quantiles_to_drop_per_net=dropped,
        seed=1,
        device="cpu",
        **copy.deepcopy(SETTINGS),
    )
    theirs.learn(40)
    theirs.save("theirs.zip")
    imported = import_model(Path("theirs.zip"), "Pendulum-v1", further=100)
    trainer = rlcore.build(rlcore.load_config(imported.folder / "config.toml"), resume=True).trainer
    loss, noise = trainer.learner._loss, []
    sample = loss.sample_noise

    def noted(*arguments):
        entries = sample(*arguments)
        noise.extend((entries["noise"].clone(), entries["next", "noise"].clone()))
        return entries

    monkeypatch.setattr(loss, "sample_noise", noted)
    generator = torch.Generator().manual_seed(3)
    minibatches = [made_up(generator) for _ in range(UPDATES)]
    begun = [ours.clone() for ours, _ in outputs(trainer.model, theirs)]
    for minibatch in minibatches:
        trainer.learner.update(minibatch)
    assert len(noise) == 2 * UPDATES
    monkeypatch.setattr("torch.distributions.normal._standard_normal", lambda *_, **__: noise.pop(0))
    theirs.set_logger(configure(None, []))
    theirs.replay_buffer = Minibatches(minibatches)
    for _ in range(UPDATES):
        theirs.train(1, SAMPLES)
    for start, (ours, other) in zip(begun, outputs(trainer.model, theirs), strict=True):
        assert not torch.allclose(start, ours, rtol=1e-3, atol=1e-4), "it moves"
        torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-5)
