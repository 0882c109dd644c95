"""Small runs: stopped and resumed, and killed within an update."""

import json
import signal
import subprocess
import sys

import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_trainer
from rlcore_plugin_testing.small_run import make_run

from rlcore.checkpoints.manifest import read_manifest

from .sections import AROUND, NUMBERS, PIXELS, around

RUNS = {
    "numbered": AROUND,
    "numbers": NUMBERS,
    "pixels": PIXELS,
    "ratio": around(buffer={"updates_per_batch": 1, "replay_ratio": 2.0}),
}


def finished(folder, sections, resume=False):
    """Train a run in a folder to its end, and return the digest of its last state."""
    trainer = make_run(folder=folder, sections=sections, resume=resume).trainer
    trainer.train()
    return read_manifest(trainer.last_checkpoint)["digest"]


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


CHILD = """
import json, os, signal, sys
from rlcore_plugin_testing.small_run import make_run
from rlcore_plugin_dreamer import laprop, loss
count = 0
def killing(owner, name):
    inner = getattr(owner, name)
    def counted(*arguments, **keywords):
        global count
        count += 1
        if count == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*arguments, **keywords)
    setattr(owner, name, counted)
killing(*{"imagining": (loss, "imagine"), "stepping": (laprop, "_clipped")}[sys.argv[1]])
make_run(folder=sys.argv[3], sections=json.loads(sys.stdin.read()), resume=sys.argv[4] == "resume").trainer.train()
"""


def killed(folder, sections, where, count, resume):
    """Run in a process that kills itself while an update imagines, or while the optimizer steps."""
    arguments = [sys.executable, "-c", CHILD, where, str(count), str(folder), "resume" if resume else "begin"]
    done = subprocess.run(arguments, input=json.dumps(sections), text=True, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.slow
def test_kills_within_an_update_leave_a_run_equal(tmp_path):
    sections = {**AROUND, "checkpoint": {"use": "torch", "every": 16}}
    whole = finished(tmp_path / "whole", sections)
    folder = tmp_path / "killed"
    killed(folder, sections, "imagining", 7, resume=False)
    killed(folder, sections, "stepping", 2, resume=True)
    killed(folder, sections, "imagining", 2, resume=True)
    assert finished(folder, sections, resume=True) == whole


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
