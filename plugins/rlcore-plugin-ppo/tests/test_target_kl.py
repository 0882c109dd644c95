"""`target_kl`: the epochs of a batch end once the policy has moved that far from the one that collected it."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_run

from rlcore import ConfigError, hookimpl

SECTIONS = {
    "env": {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2},
    "model": {"use": "mlp", "hidden": [8]},
    "estimator": {"use": "ppo:gae"},
    "optimizer": [{"use": "adam", "lr": 0.01}],
    "collector": {"use": "local", "frames_per_batch": 32},
    "buffer": {"use": "rollout", "epochs": 6, "minibatch_size": 16},
    "metrics": {"every": 32},
}


class Watch:
    """Notes the divergence of every minibatch, by batch and epoch."""

    def __init__(self):
        self.batches = []

    @hookimpl
    def pre_optim_steps(self):
        self.batches.append([[]])

    @hookimpl
    def post_optim_log(self, metrics):
        self.batches[-1][-1].append(float(metrics["kl_approx"]))

    @hookimpl
    def post_epoch(self):
        self.batches[-1].append([])


def run_of(watch=None, target_kl=None, learner=None, **keys):
    loss = {"use": "ppo"} | ({} if target_kl is None else {"target_kl": target_kl})
    sections = {**SECTIONS, "loss": loss, "learner": learner or {"use": "gradient"}}
    return make_run("run.total_frames=128", sections=sections, hooks=[watch] if watch else [], **keys)


def weights(run):
    return [parameter.detach().clone() for parameter in run.trainer.model.parameters()]


def test_no_epoch_follows_one_whose_last_minibatch_is_above_it():
    without, watch = Watch(), Watch()
    run_of(without).trainer.train()
    last = sorted(epoch[-1] for epochs in without.batches for epoch in epochs if epoch)
    target = last[len(last) // 2]
    run = run_of(watch, target_kl=target)
    run.trainer.train()
    assert len(watch.batches) == 4
    counts = []
    for epochs in watch.batches:
        trained = [epoch for epoch in epochs if epoch]
        assert all(len(epoch) == 2 for epoch in trained), "an epoch that has begun is finished"
        assert all(epoch[-1] <= target for epoch in trained[:-1])
        assert len(trained) == 6 or trained[-1][-1] > target
        counts.append(len(trained))
    assert min(counts) < 6, "the target is such that some epochs are left out"
    assert run.trainer.progress.updates == 2 * sum(counts)
    assert run.trainer.metrics.latest["train/epochs"] == counts[-1]


def test_a_target_that_is_never_reached_changes_nothing():
    plain, limited = run_of(), run_of(target_kl=1e6)
    plain.trainer.train()
    limited.trainer.train()
    assert all(map(torch.equal, weights(plain), weights(limited)))
    assert limited.trainer.metrics.latest["train/epochs"] == 6
    assert "train/epochs" not in plain.trainer.metrics.latest


def test_a_run_with_a_target_resumes_exactly(tmp_path):
    sections = {**SECTIONS, "loss": {"use": "ppo", "target_kl": 1e-3}}
    assert check_resumed(tmp_path, "run.total_frames=128", sections=sections).progress.updates < 4 * 12


@pytest.mark.slow
def test_a_compiled_update_stops_where_an_eager_one_does(caplog):
    eager, graph = Watch(), Watch()
    run_of(eager, target_kl=1e-3).trainer.train()
    run_of(graph, target_kl=1e-3, learner={"use": "gradient", "compile": True}).trainer.train()
    assert [[len(epoch) for epoch in epochs] for epochs in graph.batches] == [
        [len(epoch) for epoch in epochs] for epochs in eager.batches
    ]
    assert "splits the update" not in caplog.text


def test_a_target_is_above_zero():
    with pytest.raises(ConfigError, match=r"\[loss\] target_kl: Input should be greater than 0"):
        run_of(target_kl=0.0)
