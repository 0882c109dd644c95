"""The planner outside of training: exported with its plans as a state, watched; and killed while it trains."""

import json

import pytest
from rlcore_plugin_testing import check_killed
from rlcore_plugin_testing.small_run import make_run

from .sections import AROUND

SAVED = {**AROUND, "checkpoint": {"use": "torch", "every": 16}}
PENDULUM = {"use": "gymnasium", "id": "Pendulum-v1", "num_envs": 2, "max_episode_steps": 12}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["torch-export", "onnx", "safetensors"])
def test_an_export_plans_as_the_run_does(kind, cli, workdir):
    """Each file is compared with the agent as it is written; an evaluation goes from plan to plan."""
    if kind == "onnx":
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
    if kind == "safetensors":
        pytest.importorskip("safetensors")
    make_run(folder=workdir, sections=SAVED).trainer.train()
    suffix = {"torch-export": "pt2"}.get(kind, kind)
    outcome = cli("export", "toy", "--format", kind, "--output", f"policy.{suffix}", "--trust")
    assert outcome.code == 0, outcome.err
    of_run, of_file = (
        json.loads(cli("evaluate", "toy", "--json", "--trust", *more).out)["data"]["returns"]
        for more in ((), ("--agent", f"policy.{suffix}"))
    )
    assert of_file == pytest.approx(of_run, rel=1e-4)


def test_watch_shows_the_planner_and_says_why_nothing_is_imagined(cli, workdir):
    video = pytest.importorskip("rlcore_plugin_video.mp4")
    make_run(folder=workdir, sections={**SAVED, "env": PENDULUM}).trainer.train()
    assert cli("watch", "toy", "--video", "real.mp4", "--trust").code == 0
    assert len(video.read_mp4("real.mp4")[0]) == 13
    outcome = cli("watch", "toy", "--imagined", "--video", "imagined.mp4", "--trust")
    assert outcome.code == 2
    assert "a TDMPC2Model has no method imagine" in outcome.err


@pytest.mark.slow
def test_kills_while_it_plans_and_within_an_update_leave_a_run_equal(tmp_path):
    planning, updating = "rlcore_plugin_tdmpc2.planning:MPPI.plan", "rlcore_plugin_tdmpc2.loss:TDMPC2Loss.forward"
    check_killed(tmp_path, SAVED, [(planning, 12), (updating, 3), (planning, 5)])
