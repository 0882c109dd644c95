"""`make_trainer`: which operations it registers, and that they train for real."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from tensordict import TensorDict

import rlcore
from rlcore.errors import ConfigError, HookError
from rlcore.helpers import make_trainer
from rlcore.scripts.factory import Factory

SHORT = {"total_frames": 256, "frames_per_batch": 64, "optim_steps_per_batch": 3, "batch_size": 16, "sub_traj_len": 8}


class ValueLoss(torch.nn.Module):
    """Regresses the critic on the reward, and counts what it is told."""

    def __init__(self, critic):
        super().__init__()
        self.critic = critic
        self.rewards, self.keys, self.noises = [], set(), 0

    def forward(self, batch):
        self.rewards.append(batch["next", "reward"].clone())
        self.keys |= set(batch.keys())
        return {"loss_value": (self.critic(batch["observation"]) - batch["next", "reward"]).square().mean()}

    def reset_noise(self):
        self.noises += 1


class List:
    """A replay buffer that keeps everything."""

    def __init__(self):
        self.kept = []

    def extend(self, batch):
        self.kept.append(batch.reshape(-1).clone())

    def sample(self, batch_size):
        whole = torch.cat(self.kept)
        return whole[torch.randint(len(whole), (batch_size,))]

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Recorder:
    """An env that pays one per step."""

    def __init__(self):
        self.rollouts = 0

    def rollout(self, max_steps, policy, **options):
        self.rollouts += 1
        ends = torch.zeros(max_steps, 1, dtype=torch.bool)
        return TensorDict({"next": {"reward": torch.ones(max_steps, 1), "done": ends}}, [max_steps])


class Counting:
    """A policy, or something that moves targets, that counts its steps."""

    def __init__(self):
        self.steps = []

    def step(self, frames=None):
        self.steps.append(frames)


def made(loss=None, **arguments):
    """Return a trainer over CartPole and its loss."""
    make = Factory(total_frames=256, seed=1)
    make.env("gymnasium", id="CartPole-v1", num_envs=2)
    critic = make.model("mlp", hidden=[8]).critic
    loss = loss or ValueLoss(critic)
    collector = make.collector("local", frames_per_batch=64)
    cfg = SimpleNamespace(**{**SHORT, **arguments.pop("cfg", {})})
    return make_trainer(collector, loss, cfg=cfg, **arguments), loss


def test_it_trains_on_parts_of_each_batch():
    trainer, loss = made()
    before = [parameter.clone() for parameter in loss.parameters()]
    trainer.train()
    assert trainer.collected_frames == 256
    assert len(loss.rewards) == 4 * 3
    assert all(rewards.shape == (2, 8, 1) for rewards in loss.rewards)
    assert all((a != b).any() for a, b in zip(before, loss.parameters(), strict=True))
    assert trainer.metrics.newest("n_frames") == 256
    assert {"lr", "('next', 'reward')"} <= set(trainer.metrics._newest)


def test_the_stock_hooks_are_registered_for_checkpoints():
    trainer, _ = made()
    assert set(trainer.app_state) >= {"batch_subsampler", "count_frames_log", "update_weights"}
    assert "replay_buffer" not in trainer.app_state


@pytest.mark.parametrize(("kind", "expected"), [("adam", "Adam"), ("sgd", "SGD"), ("adamax", "Adamax")])
def test_optimizers(kind, expected):
    trainer, _ = made(cfg={"optimizer": kind, "lr": 0.01, "weight_decay": 0.1})
    group = trainer.optimizer.param_groups[0]
    assert type(trainer.optimizer).__name__ == expected
    assert (group["lr"], group["weight_decay"]) == (0.01, 0.1)
    assert kind != "adam" or group["betas"] == (0.0, 0.9)


def test_the_learning_rate_falls_to_zero_over_all_steps_or_stays():
    trainer, _ = made()
    trainer.train()
    assert trainer.optimizer.param_groups[0]["lr"] == pytest.approx(0, abs=1e-9)
    steady, _ = made(cfg={"lr_scheduler": ""})
    steady.train()
    assert steady.optimizer.param_groups[0]["lr"] == 3e-4


def test_a_replay_buffer_takes_every_batch_and_gives_the_minibatches():
    buffer = List()
    trainer, loss = made(replay_buffer=buffer)
    trainer.train()
    assert sum(len(batch) for batch in buffer.kept) == 256
    assert len(loss.rewards) == 12


def test_targets_move_after_each_step_and_the_exploration_after_each_iteration():
    targets, exploration = Counting(), Counting()
    trainer, _ = made(target_net_updater=targets, policy_exploration=exploration)
    trainer.train()
    assert len(targets.steps) == 12
    assert exploration.steps == [64] * 4


def test_rewards_are_normalised_when_asked():
    trainer, loss = made(cfg={"normalize_rewards_online": True, "normalize_rewards_online_scale": 5.0})
    trainer.train()
    assert not torch.equal(loss.rewards[-1], torch.ones(2, 8, 1)), "CartPole pays 1 each step"


def test_only_the_selected_keys_are_left():
    keys = ["observation", ("next", "reward"), ("next", "done")]
    trainer, loss = made(cfg={"selected_keys": keys})
    trainer.train()
    assert loss.keys == {"observation", "next"}


def test_noise_is_sampled_again_before_the_steps_of_each_iteration():
    trainer, loss = made(cfg={"noisy": True})
    trainer.train()
    assert loss.noises == 4


def test_the_recorder_is_tried_out_twice_and_then_asked_at_its_interval():
    recorder = Recorder()
    cfg = {"record_frames": 10, "record_interval": 2, "frame_skip": 2}
    trainer, _ = made(recorder=recorder, cfg=cfg)
    assert recorder.rollouts == 2
    trainer.train()
    assert recorder.rollouts == 2 + 2 * 2, "at calls 3 and 5 of each, the first being the trial"
    assert trainer.metrics.newest("r_evaluation") == 0.5, "a step is two frames"
    assert trainer.metrics.newest("r_evaluation_exploration") == 0.5


def test_the_logger_gets_the_settings():
    logged = []
    logger = SimpleNamespace(log_hparams=logged.append, log_scalar=lambda *args, **keys: None)
    made(logger=logger)
    assert logged == [SHORT]


def test_without_settings_it_is_a_short_run_with_a_warning():
    make = Factory(total_frames=1000, seed=1)
    make.env("gymnasium", id="CartPole-v1")
    loss = ValueLoss(make.model("mlp", hidden=[8]).critic)
    with pytest.warns(UserWarning, match="without cfg"):
        trainer = make_trainer(make.collector("local", frames_per_batch=1000), loss)
    assert trainer.run_info.total_frames == 1000
    assert isinstance(trainer, rlcore.Trainer)


@pytest.mark.parametrize(
    ("cfg", "error", "message"),
    [
        ({"optimizer": "adm"}, ConfigError, "optimizer = 'adm' must be one of adam, sgd, adamax; did you mean"),
        ({"lr_scheduler": "linear"}, ConfigError, "lr_scheduler = 'linear' must be 'cosine', or ''"),
        ({"batch_size": 0}, HookError, "batch_size = 0"),
        ({"selected_keys": "observation"}, HookError, "expected a sequence of keys"),
    ],
)
def test_what_settings_may_not_say(cfg, error, message):
    with pytest.raises(error, match=message):
        made(cfg=cfg)


def test_a_loss_without_parameters_is_refused():
    with pytest.raises(ConfigError, match="a Identity has no parameters to optimise"):
        made(loss=torch.nn.Identity())


def test_a_recorder_that_cannot_roll_out_is_refused():
    with pytest.raises(HookError, match="has no rollout"):
        made(recorder=object())
