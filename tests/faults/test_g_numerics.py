"""Rows G: losses, gradients and parameters that are not finite."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_testing import difference, make_run

from rlcore import NumericalError, hookimpl
from rlcore.checkpoints.store import Store
from rlcore.state import snapshot

POISON = {
    "loss": lambda losses: {**losses, "loss_actor": losses["loss_actor"] * torch.nan},
    "infinite loss": lambda losses: {**losses, "loss_actor": losses["loss_actor"] + torch.inf},
    # finite itself; its gradient at zero is not
    "gradient": lambda losses: {
        **losses,
        "loss_extra": ((losses["loss_actor"] - losses["loss_actor"]) ** 2).sqrt(),
    },
}


class Poison:
    """Spoils the losses of one iteration."""

    def __init__(self, how, iteration=1):
        self.how, self.iteration = POISON[how], iteration

    @hookimpl
    def post_loss(self, losses, learner):
        return self.how(losses) if learner.progress.iterations == self.iteration else None


def weights(run):
    return {name: value.clone() for name, value in run.trainer.model.state_dict().items()}


def entries(run):
    return run.trainer.parts.store.entries()


@pytest.mark.parametrize("how", POISON)
def test_g1_g2_a_loss_or_gradient_that_is_not_finite_is_not_applied_and_ends_the_run(tmp_path, how):
    healthy = make_run("run.total_frames=16", folder=tmp_path / "healthy", sections={"evaluator": None})
    healthy.trainer.train()
    run = make_run(folder=tmp_path / "run", hooks=[Poison(how)], sections={"evaluator": None})
    with pytest.raises(NumericalError, match="not finite"):
        run.trainer.train()
    assert difference(weights(run), weights(healthy)) is None, "no parameter was changed"


def test_g1_the_batch_that_led_to_it_is_kept(tmp_path):
    run = make_run(folder=tmp_path, hooks=[Poison("loss")])
    with pytest.raises(NumericalError):
        run.trainer.train()
    store = run.trainer.parts.store
    _, states = Store(tmp_path / "toy" / "faults", store._backend, store._backend_name).load_newest()
    batch = run.trainer._batch
    assert torch.equal(states["batch"]["observation"], batch["observation"])
    assert torch.equal(states["batch"]["next"]["reward"], batch["next", "reward"])


def test_g1_the_state_before_it_is_saved_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "_COST_FACTOR", 0)  # keep every boundary, whatever it costs
    whole = make_run(folder=tmp_path / "whole")
    whole.trainer.train()
    run = make_run(folder=tmp_path / "run", hooks=[Poison("loss")])
    with pytest.raises(NumericalError):
        run.trainer.train()
    assert entries(run)[-1].frames == 16, "the boundary before the iteration that failed"
    resumed = make_run(folder=tmp_path / "run", hooks=[Poison("loss", iteration=99)], resume=True)
    resumed.trainer.train()
    assert difference(weights(resumed), weights(whole)) is None


def test_g1_updates_are_skipped_and_counted_up_to_a_budget(tmp_path):
    skip = {"learner": {"use": "gradient", "on_nonfinite": "skip", "skip_budget": 4}}
    run = make_run(folder=tmp_path / "run", hooks=[Poison("loss")], sections=skip)
    run.trainer.train()
    assert run.trainer.learner.skipped_updates == 4
    assert all(value.isfinite().all() for value in weights(run).values())
    skip["learner"]["skip_budget"] = 3
    with pytest.raises(NumericalError):
        make_run(folder=tmp_path / "over", hooks=[Poison("loss")], sections=skip).trainer.train()


def test_g3_a_parameter_that_is_not_finite_is_never_saved(tmp_path):
    class Spoil:
        @hookimpl
        def post_steps(self, trainer):
            if trainer.progress.frames >= 48:
                with torch.no_grad():
                    next(iter(trainer.model.parameters())).fill_(torch.nan)

    run = make_run("checkpoint.every=16", folder=tmp_path, hooks=[Spoil()], sections={"evaluator": None})
    with pytest.raises(NumericalError, match=r"model/.* at frame 48"):
        run.trainer.train()
    assert entries(run)[-1].frames == 32
    for entry in entries(run):
        states = run.trainer.parts.store.load(entry)
        assert all(value.isfinite().all() for value in states["model"].values())


def test_g7_a_batch_whose_rewards_are_all_equal_gives_finite_updates(tmp_path):
    sections = {
        "loss": {"use": "ppo", "normalize_advantage": True},
        "estimator": {"use": "ppo:gae", "standardise": True, "gamma": 0.0, "lmbda": 0.0},
        "collector": {"use": "local", "frames_per_batch": 2},
        "buffer": {"use": "rollout", "epochs": 1, "minibatch_size": 1},
    }
    run = make_run("run.total_frames=16", sections=sections)
    run.trainer.train()
    assert all(value.isfinite().all() for value in weights(run).values())
