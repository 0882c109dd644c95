"""A model becomes a run folder that acts alike, with its moments and clocks, and that goes on."""

import io

import numpy as np
import pytest
import torch
from rlcore_plugin_import.importing import import_model

import rlcore
from rlcore.errors import StorageError

from .written_models import actions_of, archive, members


@pytest.fixture
def imported(workdir):
    return import_model(archive(workdir / "ppo.zip", members()), "CartPole-v1", further=512)


def loaded(parts, name):
    return torch.load(io.BytesIO(parts[name]), weights_only=True)


def test_acts_as_the_networks_of_the_file(imported):
    observation = np.random.default_rng(0).uniform(-1, 1, (1_000, 4)).astype(np.float32)
    expected = actions_of(loaded(members(), "policy.pth"), torch.from_numpy(observation))
    assert rlcore.load_agent(imported.folder).act(observation).tolist() == expected.tolist()


def test_goes_on_from_the_weights_moments_and_clocks_of_the_file(imported):
    run = rlcore.build(rlcore.load_config(imported.folder / "config.toml"), resume=True)
    parts, state = members(), run.trainer.model.state_dict()
    tensors, moments = loaded(parts, "policy.pth"), loaded(parts, "policy.optimizer.pth")["state"]
    assert torch.equal(state["critic.layers.0.weight"], tensors["mlp_extractor.value_net.0.weight"])
    optimizer = run.trainer.parts.stateful["optimizer.policy"]
    here = optimizer.state[dict(run.trainer.model.named_parameters())["critic.layers.0.weight"]]
    assert torch.equal(here["exp_avg"], moments[2]["exp_avg"])
    assert torch.equal(here["exp_avg_sq"], moments[2]["exp_avg_sq"])
    assert float(here["step"]) == 1
    assert (run.trainer.progress.frames, run.trainer.progress.episodes) == (512, 3)
    assert run.trainer.train().frames == 1024
    assert float(next(iter(optimizer.state.values()))["step"]) > 1


def test_settings_become_keys(imported):
    config = imported.translation.config
    assert config["collector"] == {"frames_per_batch": 128}
    assert config["env"]["num_envs"] == 2
    assert config["estimator"] == {"use": "gae", "gamma": 0.98, "lmbda": 0.9}
    assert config["optimizer"][0]["lr"] == 1e-3
    assert config["loss"]["critic_coef"] == 1.0


def test_the_command_says_what_comes_next(workdir, cli):
    archive(workdir / "ppo.zip", members())
    done = cli("import", "ppo.zip", "--env", "CartPole-v1", "--name", "taken", "--frames", "128")
    assert done.code == 0, done.err
    assert "runs/taken: PPO of Stable-Baselines3 at frame 512" in done.out
    assert "rlcore train --resume runs/taken" in done.out
    assert cli("evaluate", "runs/taken", "--episodes", "1").code == 0
    again = cli("import", "ppo.zip", "--env", "CartPole-v1", "--name", "taken")
    assert again.code == 2
    assert "exists already" in again.err


def test_a_checkpoint_that_cannot_be_written_leaves_no_folder(workdir, monkeypatch):
    def full(self):
        raise StorageError("the disk is full")

    monkeypatch.setattr("rlcore.training.saving.Saving.quietly", full)
    with pytest.raises(StorageError, match="the disk is full"):
        import_model(archive(workdir / "ppo.zip", members()), "CartPole-v1")
    assert not (workdir / "runs" / "ppo").exists()


def test_an_optimizer_that_took_no_step_starts_over_and_is_named(workdir):
    parts = members()
    state = loaded(parts, "policy.optimizer.pth")
    buffer = io.BytesIO()
    torch.save({**state, "state": {}}, buffer)
    made = import_model(archive(workdir / "a.zip", {**parts, "policy.optimizer.pth": buffer.getvalue()}), "CartPole-v1")
    assert "optimizer policy has taken no step" in made.notes


def test_a_schedule_that_cannot_be_read_is_named(workdir):
    made = import_model(archive(workdir / "a.zip", members(clip_range={":serialized:": "gAQu"})), "CartPole-v1")
    assert "clip_range was a schedule, which cannot be read: it is 0.2 here" in made.notes
