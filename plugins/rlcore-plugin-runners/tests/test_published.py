"""rlpyt's published examples run: what differs from them is how long they go on."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from rlcore_plugin_replay import room
from rlcore_plugin_runners import logger_context, make_affinity
from rlcore_plugin_runners.diagnostics import read

from rlcore.errors import ConfigError

pytest.importorskip("ale_py")
pytest.importorskip("cv2")
published = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("published.py"))))
TWO = [{"cuda_idx": None, "workers_cpus": [0, 1]}] * 2


def trained(runner, folder, mode="none"):
    """Train in a folder, and return the rows."""
    with logger_context(folder, 0, "example", {"game": "pong"}, mode, override_prefix=True):
        runner.train()
    return read(folder / "run_0/progress.csv")


@pytest.mark.parametrize("make", [published.example_1, published.example_5], ids=["1", "5"])
def test_a_million_steps_of_a_game_take_room_for_single_frames(make, monkeypatch):
    """56 GB as whole observations, 7.4 GB where each frame is stored once."""
    config = make().config()
    assert config["buffer"] | {"capacity": 1_000_000, "stack": 4} == config["buffer"]
    assert config["run"]["total_frames"] >= 200_000_000
    monkeypatch.setattr(room, "host_memory", lambda: 8 * 2**30)
    runner = make()
    runner.startup()
    runner.trainer.collector.close()
    monkeypatch.setattr(room, "host_memory", lambda: 6 * 2**30)
    with pytest.raises(ConfigError, match=r"capacity = 1,000,000: .* take 6\.6 GiB"):
        make().startup()


@pytest.mark.slow
def test_example_1(tmp_path):
    rows = trained(published.example_1(1_200, 600, horizon=50), tmp_path, "last")
    assert [row["Diagnostics/CumSteps"] for row in rows] == ["0", "600", "1200"]
    assert float(rows[-1]["Diagnostics/CumUpdates"]) > 0
    assert (tmp_path / "run_0/params.pkl").exists()


@pytest.mark.slow
def test_example_2(tmp_path):
    rows = trained(published.example_2("Hopper-v5", 400, 200, 2, min_steps_learn=200), tmp_path)
    assert float(rows[-1]["Diagnostics/CumUpdates"]) == 201


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(published.SAMPLERS))
def test_example_3(mode, tmp_path):
    rows = trained(published.example_3(mode, n_steps=320, log_interval_steps=160), tmp_path)
    assert [row["Diagnostics/CumUpdates"] for row in rows] == ["2", "4"]


@pytest.mark.slow
@pytest.mark.parametrize("mid_batch_reset", [False, True])
def test_example_4(mid_batch_reset, tmp_path):
    runner = published.example_4(mid_batch_reset, n_steps=640, log_interval_steps=320)
    rows = trained(runner, tmp_path)
    assert [row["Diagnostics/CumUpdates"] for row in rows] == ["1", "2"]
    assert runner.config()["model"]["use"] == "recurrent:lstm"


@pytest.mark.slow
def test_example_5(tmp_path):
    runner = published.example_5(n_steps=256, log_interval_steps=128, horizon=50, min_steps_learn=64)
    rows = trained(runner, tmp_path)
    assert [row["Diagnostics/CumUpdates"] for row in rows] == ["0", "8", "16"]


@pytest.mark.slow
def test_example_6(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    published.example_6(1, n_steps=320, log_interval_steps=160)
    (title,) = (tmp_path / "data/local").glob("*/*/example_6")
    runs = sorted(title.glob("*/*/run_*"))
    assert len(runs) == 4
    learnt = {run: json.loads((run / "params.json").read_text()) for run in runs}
    assert {(params["algo"]["learning_rate"], params["env"]["game"]) for params in learnt.values()} == {
        (rate, game) for rate in (7e-4, 1e-3) for game in ("pong", "seaquest")
    }
    for run in runs:
        assert float(read(run / "progress.csv")[-1]["Diagnostics/CumSteps"]) == 320
    assert (title / "num_launched.txt").read_text() == "4 of 4\n"


@pytest.mark.slow
def test_example_7_in_two_processes(tmp_path):
    rows = trained(published.example_7(TWO, n_steps=320, log_interval_steps=160), tmp_path)
    assert [row["Diagnostics/CumUpdates"] for row in rows] == ["1", "2"]


def test_example_7_on_several_gpus_is_refused(monkeypatch):
    monkeypatch.setattr("rlcore_plugin_runners.affinity.allowed", lambda: list(range(48)))
    affinity = make_affinity(run_slot=0, n_cpu_core=16, n_gpu=8, hyperthread_offset=24, n_socket=2, gpu_per_run=2)
    assert [(part["cuda_idx"], part["master_cpus"]) for part in affinity] == [(0, [0, 24, 1, 25]), (1, [2, 26, 3, 27])]
    with pytest.raises(ConfigError, match="name several GPUs"):
        published.example_7(affinity)
