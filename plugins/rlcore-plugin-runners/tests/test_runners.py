"""The runners train what a script of rlpyt asks for: rows, snapshots, trajectories, a resume, and what is refused."""

import json
import os

import numpy as np
import pytest
from rlcore_plugin_runners import (
    A2C,
    DDPG,
    DQN,
    PPO,
    SAC,
    TD3,
    AlternatingSampler,
    AsyncCpuSampler,
    AsyncGpuSampler,
    AsyncRl,
    AsyncSerialSampler,
    AtariEnv,
    AtariTrajInfo,
    CatDqnAgent,
    CategoricalDQN,
    CpuSampler,
    DdpgAgent,
    DqnAgent,
    FfAgent,
    GpuSampler,
    MinibatchRl,
    MinibatchRlEval,
    SacAgent,
    SerialSampler,
    SyncRl,
    Td3Agent,
    TrajInfo,
    gym_make,
    logger_context,
    make_affinity,
    set_snapshot_gap,
)
from rlcore_plugin_runners.affinity import allowed
from rlcore_plugin_runners.diagnostics import Diagnostics, read
from rlcore_plugin_testing import make_run

from rlcore import Episode
from rlcore.errors import ConfigError, RlcoreError

STATISTICS = ("Average", "Std", "Median", "Min", "Max")


def sampler_of(cls=SerialSampler, env="CartPole-v1", **keys):
    shape = {"batch_T": 8, "batch_B": 4, "max_decorrelation_steps": 0, "eval_n_envs": 2}
    return cls(EnvCls=gym_make, env_kwargs={"id": env}, **{**shape, **keys})


def runner_of(cls=MinibatchRl, sampler=None, n_steps=256, **keys):
    ppo = PPO(minibatches=2, epochs=1, learning_rate=1e-2)
    return cls(ppo, FfAgent(), sampler or sampler_of(), n_steps=n_steps, log_interval_steps=64, **keys)


def trained(folder, runner, mode="last", **keys):
    """Train in a folder and return the rows of `progress.csv`."""
    with logger_context(folder, 0, "test", {"lr": 1e-2}, mode, override_prefix=True):
        runner.train(**keys)
    return read(folder / "run_0" / "progress.csv")


def checkpoints(folder):
    return sorted(int(path.name[:12]) for path in (folder / "run_0/checkpoints").glob("0*"))


def test_rows_are_about_training(tmp_path):
    rows = trained(tmp_path, runner_of())
    assert [row["Diagnostics/CumSteps"] for row in rows] == ["64", "128", "192", "256"]
    assert [row["Diagnostics/Iteration"] for row in rows] == ["1", "3", "5", "7"]
    assert [row["Diagnostics/CumUpdates"] for row in rows] == ["4", "8", "12", "16"]
    last = {name: float(value) for name, value in rows[-1].items()}
    for name in ("Length", "Return", "NonzeroRewards", "DiscountedReturn", "loss", "gradNorm", "entropy"):
        assert {name + statistic for statistic in STATISTICS} <= set(last)
    # of CartPole, whose rewards are all 1
    assert last["ReturnAverage"] == last["LengthAverage"] == last["NonzeroRewardsAverage"]
    assert last["DiscountedReturnMax"] == pytest.approx((1 - 0.99 ** last["LengthMax"]) / 0.01, rel=1e-6)
    assert sum(float(row["Diagnostics/NewCompletedTrajs"]) for row in rows) == last["Diagnostics/CumCompletedTrajs"]
    assert last["Diagnostics/CumReplayRatio"] == 1  # one epoch
    assert json.loads((tmp_path / "run_0/params.json").read_text()) == {"lr": 1e-2, "name": "test", "run_ID": 0}


def test_rows_are_about_evaluations(tmp_path):
    rows = trained(tmp_path, runner_of(MinibatchRlEval))
    assert [row["Diagnostics/CumSteps"] for row in rows] == ["0", "64", "128", "192", "256"]
    for row in rows:
        figures = {name: float(value) for name, value in row.items()}
        assert figures["Diagnostics/TrajsInEval"] == 2
        assert figures["Diagnostics/StepsInEval"] == 2 * figures["LengthAverage"] == 2 * figures["ReturnAverage"]
        times = (figures[f"Diagnostics/{name}"] for name in ("CumTime (s)", "CumEvalTime", "CumTrainTime"))
        whole, *parts = times
        assert whole == pytest.approx(sum(parts))
    assert rows[0]["lossAverage"] == "nan"


class Parity(TrajInfo):
    """Counts how often the action was 1."""

    def __init__(self):
        super().__init__()
        self.Ones = 0
        self._hidden = 1

    def step(self, observation, action, reward, done, agent_info, env_info):
        super().step(observation, action, reward, done, agent_info, env_info)
        self.Ones += int(np.ravel(action)[0] == 1)
        assert (env_info is not None) == done
        if done:
            assert env_info["episode_return"] == self.Return


def test_trajectory_infos_are_those_of_the_script(tmp_path):
    last = trained(tmp_path, runner_of(sampler=sampler_of(TrajInfoCls=Parity)))[-1]
    assert 0 < float(last["OnesAverage"]) < float(last["LengthAverage"])
    assert "_hiddenAverage" not in last


def test_the_score_of_a_game_is_its_own_return():
    info = AtariTrajInfo()
    info.step(None, None, 1.0, False, None, None)
    info.step(None, None, 1.0, True, None, {"episode_return": 30.0})
    assert (info.GameScore, info.Return) == (30.0, 2.0)


@pytest.mark.parametrize(
    ("mode", "gap", "kept"),
    [("last", 1, [256]), ("all", 1, [0, 64, 128, 192, 256]), ("gap", 4, [0, 128, 256]), ("none", 1, [256])],
)
def test_snapshots(tmp_path, mode, gap, kept):
    with logger_context(tmp_path, 0, "test", snapshot_mode=mode, override_prefix=True):
        set_snapshot_gap(gap)
        runner_of().train()
    assert checkpoints(tmp_path) == kept


def test_without_a_context_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner_of(n_steps=64).train()
    assert not any(tmp_path.iterdir())


def test_a_folder_has_the_date(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with logger_context("example_1", 7, "name") as context:
        assert context.folder.parts[:2] == ("data", "local")
        assert context.folder.parts[-2:] == ("example_1", "run_7")


def without_times(rows):
    timed = ("PerSecond", "Time")
    return [{name: value for name, value in row.items() if not any(word in name for word in timed)} for row in rows]


def test_a_resumed_run_is_the_run_without_a_stop(tmp_path):
    whole = trained(tmp_path / "whole", runner_of())
    runner = runner_of()
    with logger_context(tmp_path / "parts", 0, "test", snapshot_mode="last", override_prefix=True):
        runner.startup()
        runner.trainer.stop_at = 160  # between two rows
        runner.trainer.train()
    resumed = runner_of()
    rows = trained(tmp_path / "parts", resumed, resume=True)
    assert without_times(rows) == without_times(whole)
    snapshot = resumed.get_itr_snapshot(7)
    assert snapshot["cum_steps"] == 256
    assert set(snapshot) == {"itr", "cum_steps", "agent_state_dict", "optimizer_state_dict"}
    assert set(snapshot["optimizer_state_dict"]) == {"optimizer.adam"}


def test_iterations_end_at_a_log_point():
    assert runner_of(n_steps=200).get_n_itr() == 6  # 6 iterations of 32 steps, and a row every second one
    assert runner_of(n_steps=230).get_n_itr() == 8
    assert runner_of(AsyncRl, sampler_of(AsyncSerialSampler), n_steps=200).get_n_itr() == 8


OFF_POLICY = {"min_steps_learn": 32, "replay_size": 200, "batch_size": 8, "replay_ratio": 1}


@pytest.mark.parametrize(
    ("algo", "agent", "env"),
    [
        (A2C(), FfAgent(), "CartPole-v1"),
        (DQN(**OFF_POLICY, double_dqn=True, prioritized_replay=True, n_step_return=2), DqnAgent(), "CartPole-v1"),
        (CategoricalDQN(**OFF_POLICY), CatDqnAgent(n_atoms=5), "CartPole-v1"),
        (SAC(**OFF_POLICY), SacAgent(model_kwargs={"hidden_sizes": [8]}), "Pendulum-v1"),
        (DDPG(**OFF_POLICY), DdpgAgent(model_kwargs={"hidden_sizes": [8]}), "Pendulum-v1"),
        (TD3(**OFF_POLICY), Td3Agent(model_kwargs={"hidden_sizes": [8]}), "Pendulum-v1"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_algorithm_trains(algo, agent, env):
    runner = MinibatchRl(algo, agent, sampler_of(env=env), n_steps=64, log_interval_steps=64)
    runner.train()
    assert runner.trainer.progress.updates > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runner", "sampler"),
    [
        (MinibatchRl, CpuSampler),
        (MinibatchRl, GpuSampler),
        (MinibatchRl, AlternatingSampler),
        (AsyncRl, AsyncCpuSampler),
    ],
    ids=["cpu", "gpu", "alternating", "async"],
)
def test_samplers_with_processes(tmp_path, runner, sampler):
    rows = trained(tmp_path, runner_of(runner, sampler_of(sampler), affinity={"workers_cpus": [0, 1]}))
    assert rows[-1]["Diagnostics/CumSteps"] == "256"


@pytest.mark.parametrize(("cpus", "workers"), [(1, 2), (3, 2), (4, 4)])
def test_halves_have_an_even_number_of_workers(cpus, workers):
    section = sampler_of(AlternatingSampler).sections({"workers_cpus": list(range(cpus))})["collector"]
    assert section["alternating"]
    assert section["num_workers"] == workers


def test_a_sampler_of_the_gpu_that_goes_on_is_that_of_the_cpu_where_there_is_none(caplog):
    affinity = {"workers_cpus": [0, 1]}
    sections = [sampler_of(kind).sections(affinity) for kind in (AsyncGpuSampler, AsyncCpuSampler)]
    assert sections[0] == sections[1]
    assert "without a GPU it is AsyncCpuSampler" in caplog.text


TWO = [{}, {}]


def test_what_each_process_of_sync_has_is_as_often_in_the_config_of_the_run():
    runner = SyncRl(DQN(**OFF_POLICY), DqnAgent(), sampler_of(), n_steps=256, log_interval_steps=64, affinity=TWO)
    alone, config = MinibatchRl(DQN(**OFF_POLICY), DqnAgent(), sampler_of(), 256).config(), runner.config()
    twice = (
        ("env", "num_envs"),
        ("collector", "frames_per_batch"),
        ("buffer", "minibatch_size"),
        ("buffer", "capacity"),
    )
    for section, key in twice:
        assert config[section][key] == 2 * alone[section][key]
    assert config["buffer"]["replay_ratio"] == alone["buffer"]["replay_ratio"]
    assert config["ranks"] == {"use": "processes", "count": 2}
    assert (runner.world_size, runner.itr_batch_size, runner.get_n_itr()) == (2, 64, 4)
    assert config["run"]["total_frames"] == 256


@pytest.mark.slow
def test_processes_of_sync_train_together_and_go_on(tmp_path):
    runner = runner_of(SyncRl, affinity=TWO)
    rows = trained(tmp_path, runner)
    assert [row["Diagnostics/CumSteps"] for row in rows] == ["64", "128", "192", "256"]
    assert [row["Diagnostics/CumUpdates"] for row in rows] == ["2", "4", "6", "8"]
    assert checkpoints(tmp_path) == [256]
    manifest = json.loads(next((tmp_path / "run_0/checkpoints").glob("0*/manifest.json")).read_text())
    assert "rank-1/collector" in manifest["digests"]
    assert json.loads((tmp_path / "run_0/params.json").read_text())["run_ID"] == 0
    with pytest.raises(RlcoreError, match="training ended with exit code 2; it said why"):
        trained(tmp_path, runner)  # the folder has a run, which nobody asked to go on


def test_one_process_of_sync_is_a_minibatch_runner(tmp_path):
    rows = trained(tmp_path, runner_of(SyncRl, affinity=[{"cuda_idx": None}]))
    assert without_times(rows) == without_times(trained(tmp_path / "plain", runner_of()))


REFUSED = {
    "ahead on the GPU": (
        lambda: runner_of(AsyncRl, sampler_of(AsyncGpuSampler), affinity={"cuda_idx": 0}).train(),
        "AsyncGpuSampler: where the learner's process acts on a GPU",
    ),
    "halves": (lambda: runner_of(sampler=sampler_of(AlternatingSampler, batch_B=3)).train(), "halves"),
    "no process": (lambda: runner_of(SyncRl, affinity=[]), "affinity is an empty list"),
    "several GPUs": (lambda: runner_of(SyncRl, affinity=[{"cuda_idx": 0}, {"cuda_idx": 1}]), "name several GPUs"),
    "infos of others": (
        lambda: runner_of(SyncRl, sampler_of(TrajInfoCls=Parity), affinity=TWO),
        "TrajInfoCls = Parity",
    ),
    "startup of several": (lambda: runner_of(SyncRl, affinity=TWO).startup(), "2 processes are built by train"),
    "snapshot of several": (lambda: runner_of(SyncRl, affinity=TWO).get_itr_snapshot(0), "rlcore ckpt"),
    "sampler": (lambda: runner_of(sampler=sampler_of(AsyncSerialSampler)), "takes a synchronous sampler"),
    "agent": (lambda: MinibatchRl(PPO(), DqnAgent(), sampler_of(), n_steps=64).train(), "'policy gradient'"),
    "env": (lambda: runner_of(sampler=SerialSampler(object, {}, 8, 4, max_decorrelation_steps=0)).train(), "gymnasium"),
    "evaluation": (lambda: runner_of(MinibatchRlEval, sampler_of(eval_n_envs=0)).train(), "eval_n_envs"),
    "other env": (lambda: sampler_of(eval_env_kwargs={"id": "Acrobot-v1"}), "eval_env_kwargs"),
    "mode": (lambda: logger_context("x", 0, "x", snapshot_mode="some").__enter__(), "snapshot_mode = 'some'"),
    "gap": (lambda: set_snapshot_gap(2), "inside of"),
    "resume": (lambda: runner_of().train(resume=True), "needs a logger_context"),
    "game": (lambda: AtariEnv("pong", color=True), "no setting color"),
    "CPU": (lambda: runner_of(affinity={"master_cpus": [10_000]}), r"the CPUs \[10000\]"),
    "CPUs": (lambda: make_affinity(n_cpu_core=10_000), "n_cpu_core = 10000"),
    "slot": (lambda: make_affinity(run_slot=5, n_cpu_core=1), "run_slot = 5 of 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    make, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        make()


def test_affinity_is_of_the_cpus_that_are_allowed(monkeypatch):
    monkeypatch.setattr("rlcore_plugin_runners.affinity.allowed", lambda: [3, 5, 8, 9])
    assert make_affinity()["master_cpus"] == [3, 5, 8, 9]
    second = make_affinity(run_slot=1, cpu_per_run=2)
    assert (second["master_cpus"], second["workers_cpus"], second["cuda_idx"]) == ([8, 9], [8, 9], None)
    assert make_affinity(cpu_per_worker=2)["workers_cpus"] == [[3, 5], [8, 9]]
    ranks = make_affinity(n_gpu=2, gpu_per_run=2)
    assert [(rank["cuda_idx"], rank["master_cpus"]) for rank in ranks] == [(0, [3, 5]), (1, [8, 9])]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system binds no processes to CPUs")
def test_a_run_is_bound_to_its_cpus_and_released():
    before, one = os.sched_getaffinity(0), allowed()[0]
    seen = []

    class Looks(TrajInfo):
        def __init__(self):
            super().__init__()
            seen.append(os.sched_getaffinity(0))

    runner_of(sampler=sampler_of(TrajInfoCls=Looks), affinity={"master_cpus": [one]}, n_steps=64).train()
    assert seen[0] == {one}
    assert os.sched_getaffinity(0) == before


def test_an_episode_whose_beginning_was_not_seen_is_no_trajectory():
    """As after a resume, or with a worker in the place of one that was lost."""
    hook = Diagnostics(Diagnostics.Config(), make_run().trainer.collector._context)
    zero = np.zeros(1)
    for length, forgotten in ((3, False), (2, True), (4, False)):
        if forgotten:
            hook.forget_episodes()
        for step in range(length):
            if end := step + 1 == length:
                hook.episode_end(Episode(5.0, length + forgotten, 0, {}))
            hook._step(0, zero, zero, 1.0, end)
    hook.post_steps(None)
    assert [info["Length"] for info in hook.state_dict()["infos"]] == [3, 4]
