"""What a loss reads is held against who writes it before the first frame; one that says nothing fails clearly."""

import pytest
from rlcore_plugin_ppo.loss import PPOLoss
from rlcore_plugin_testing import make_run

from rlcore import Factory, hookimpl
from rlcore.errors import ConfigError, UnwrittenEntryError

PPO = {"model": {"use": "mlp"}, "loss": {"use": "ppo"}, "estimator": []}


class Writer:
    """Writes what an estimator would."""

    @hookimpl
    def batch_process(self, batch):
        for name in ("advantage", "value_target", "state_value"):
            batch.set(name, batch["next", "reward"].clone())
        return batch


class Reader:
    """Writes nothing, and says so."""

    writes = ()

    @hookimpl
    def batch_process(self, batch):
        return batch


@pytest.mark.parametrize("loss", ["ppo", "ppo:a2c", "testing:toy"])
def test_a_loss_without_its_estimator_is_refused_before_the_first_frame(loss):
    with pytest.raises(ConfigError, match=r"reads 'advantage', 'value_target' .* add a section \[estimator\]"):
        make_run(sections={**PPO, "loss": {"use": loss}})


def test_what_a_loss_reads_follows_from_its_config():
    with pytest.raises(ConfigError, match="'state_value'"):
        make_run("loss.clip_value=true", sections=PPO)


def test_a_hook_that_may_write_anything_is_believed():
    make_run(sections=PPO, hooks=[Writer()]).trainer.train()


def test_a_hook_that_says_what_it_writes_is_taken_at_its_word(monkeypatch):
    with pytest.raises(ConfigError, match="'advantage', 'value_target'"):
        make_run(sections=PPO, hooks=[Reader()])
    monkeypatch.setattr(Writer, "writes", ("advantage", "value_target"), raising=False)
    make_run(sections=PPO, hooks=[Writer()]).trainer.train()


def test_a_loss_that_says_nothing_fails_clearly_at_its_first_update(monkeypatch):
    monkeypatch.setattr(PPOLoss, "reads", None)
    with pytest.raises(UnwrittenEntryError, match=r"no entry 'advantage'; it has .*an \[estimator\]"):
        make_run(sections=PPO).trainer.train()


def test_buffers_and_policies_say_what_they_write(monkeypatch):
    replay = {"use": "replay:prioritized", "minibatch_size": 8, "warmup_frames": 16}
    dqn = {"env": {"use": "testing:toy", "actions": "discrete"}, "model": {"use": "dqn:q-network"}}
    sections = {**PPO, **dqn, "loss": {"use": "dqn"}, "buffer": replay}
    loss = make_run(sections=sections).trainer.learner._loss
    monkeypatch.setattr(type(loss), "reads", (*loss.reads, "priority_weight", "index"))
    make_run(sections=sections)
    monkeypatch.setattr(type(loss), "reads", (*loss.reads, "steps_to_next_obs"))
    with pytest.raises(ConfigError, match=r"'steps_to_next_obs' .* one that writes entries says so by `writes`"):
        make_run(sections=sections)
    make_run("buffer.n_steps=3", sections=sections)
    monkeypatch.setattr(type(loss), "reads", (*loss.reads, "sample_log_prob"))
    with pytest.raises(ConfigError, match="'sample_log_prob'"):
        make_run("buffer.n_steps=3", sections=sections)


def test_entries_of_transforms_count(monkeypatch):
    monkeypatch.setattr(PPOLoss, "reads", (*PPOLoss.reads, "episode_reward"))
    sections = {**PPO, "estimator": {"use": "gae"}}
    with pytest.raises(ConfigError, match="'episode_reward'"):
        make_run(sections=sections)
    make_run(sections={**sections, "transform": [{"use": "transforms:reward-sum"}]})


def script(estimator):
    make = Factory(total_frames=64)
    make.env("testing:toy")
    make.model("mlp")
    loss = make.loss("ppo")
    if estimator:
        make.estimator("gae")
    optimizer = make.optimizer("adam")
    make.collector(frames_per_batch=16)
    make.buffer(minibatch_size=8)
    return make.trainer(optimizer=optimizer, loss_module=loss, optim_steps_per_batch=1, progress_bar=False)


def test_a_script_is_checked_when_it_begins_to_train():
    trainer = script(estimator=False)
    with pytest.raises(ConfigError, match="PPOLoss reads 'advantage', 'value_target'"):
        trainer.train()
    assert trainer.progress.frames == 0
    script(estimator=True).train()


def test_an_operation_of_a_script_may_write_anything():
    trainer = script(estimator=False)
    trainer.register_op("batch_process", Writer().batch_process)
    trainer.train()
