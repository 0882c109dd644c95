"""Small runs: stopped and resumed, and killed within an update."""

import json
import shutil

import pytest
import torch
from rlcore_plugin_testing import check_killed, check_resumed, make_trainer
from rlcore_plugin_testing.small_run import make_run

from .sections import AROUND, NUMBERS, PIXELS, around

RUNS = {
    "numbered": AROUND,
    "numbers": NUMBERS,
    "pixels": PIXELS,
    "ratio": around(buffer={"updates_per_batch": 1, "replay_ratio": 2.0}),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_stops_and_resumes_is_the_run_without_a_stop(name, tmp_path):
    """The state of the policy, the stored states, the noise of the loss and the bounds of returns go on."""
    check_resumed(tmp_path, sections=RUNS[name], stop_at=48)


def test_an_update_moves_every_network_and_the_bounds():
    trainer = make_trainer(sections=AROUND)
    model = trainer.model
    before = {part: [p.clone() for p in model.get_submodule(part).parameters()] for part in model.parts()}
    trainer.train()
    assert trainer.progress.updates > 0
    for part, weights in before.items():
        pairs = zip(weights, model.get_submodule(part).parameters(), strict=True)
        assert any(not torch.equal(old, new) for old, new in pairs), part
    assert torch.equal(model.return_bounds.bounds, model.latest_bounds.bounds)
    assert model.return_bounds.bounds.abs().sum() > 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_an_update_of_compiled_parts_is_the_eager_one():
    results = []
    for compiled in ("false", "true"):
        trainer = make_trainer(f"learner.compile={compiled}", sections=AROUND)
        trainer.train()
        assert trainer.progress.updates > 0
        results.append(trainer.model.state_dict())
    for name, value in results[0].items():
        torch.testing.assert_close(results[1][name], value, atol=1e-4, rtol=1e-3)


@pytest.mark.slow
def test_kills_within_an_update_leave_a_run_equal(tmp_path):
    imagining, stepping = "rlcore_plugin_dreamer.loss:imagine", "rlcore_plugin_dreamer.laprop:_clipped"
    sections = {**AROUND, "checkpoint": {"use": "torch", "every": 16}}
    check_killed(tmp_path, sections, [(imagining, 7), (stepping, 2), (imagining, 2)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["torch-export", "onnx"])
def test_an_export_infers_latents_as_the_run_does(kind, cli, workdir):
    """The file is compared with the agent as it is written; an evaluation goes from state to state."""
    if kind == "onnx":
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
    make_run(folder=workdir, sections={**NUMBERS, "checkpoint": {"use": "torch", "every": 32}}).trainer.train()
    file = "policy.onnx" if kind == "onnx" else "policy.pt2"
    outcome = cli("export", "toy", "--format", kind, "--output", file, "--trust")
    assert outcome.code == 0, outcome.err
    of_run, of_file = (
        json.loads(cli("evaluate", "toy", "--json", "--trust", *more).out)["data"]["returns"]
        for more in ((), ("--agent", file))
    )
    assert of_file == pytest.approx(of_run, rel=1e-4)
