"""Small runs: stopped and resumed, and compiled."""

import shutil

import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_trainer

from .sections import OF_PAPERS, REPLAY, around, paces


def sections(method, noise_steps=1, **changes):
    model = {**OF_PAPERS[method], "random_frames": 24, "noise_steps": noise_steps}
    return around(model=model, optimizer=paces(), buffer=REPLAY, **changes)


@pytest.mark.parametrize("method", ["flashsac", "simbav2"])
def test_a_resumed_run_is_the_run_without_a_stop(method, tmp_path):
    """Between two steps of the actor, with a noise that is held; statistics and scale are the same to the bit."""
    flash = method == "flashsac"
    check_resumed(tmp_path, sections=sections(method, 16 if flash else 1, loss={"in_turn": flash}))


@pytest.mark.parametrize("method", list(OF_PAPERS))
def test_a_run_moves_every_part(method):
    trainer = make_trainer(sections=sections(method))
    starts = {name: value.clone() for name, value in trainer.model.named_parameters()}
    trainer.train()
    still = [name for name, value in trainer.model.named_parameters() if torch.equal(value, starts[name])]
    assert not still


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("method", ["flashsac", "simbav2"])
def test_the_compiled_update_is_the_eager_one(method):
    """Weights within their bounds, targets, and statistics."""
    results = []
    for compiled in ("false", "true"):
        trainer = make_trainer(f"learner.compile={compiled}", sections=sections(method))
        trainer.train()
        assert compiled == "false" or trainer.learner._compiled._functions, "it ran eagerly"
        results.append((trainer.model.state_dict(), trainer.metrics.latest["train/loss_critics"]))
    for name, value in results[0][0].items():
        torch.testing.assert_close(results[1][0][name], value, atol=1e-4, rtol=1e-3, msg=name)
    assert results[1][1] == pytest.approx(results[0][1], rel=1e-3)
