"""rlpyt's published examples in our words: the same parts and numbers, of which a caller may cut the lengths."""

import argparse
import json
import sys

from rlcore_plugin_runners import (
    A2C,
    DQN,
    SAC,
    AlternatingSampler,
    AtariDqnAgent,
    AtariEnv,
    AtariFfAgent,
    AtariLstmAgent,
    AtariTrajInfo,
    CpuSampler,
    GpuResetCollector,
    GpuSampler,
    GpuWaitResetCollector,
    MinibatchRl,
    MinibatchRlEval,
    SacAgent,
    SerialSampler,
    SyncRl,
    VariantLevel,
    affinity_from_code,
    encode_affinity,
    gym_make,
    load_variant,
    logger_context,
    make_variants,
    run_experiments,
    update_config,
)

PONG = {"EnvCls": AtariEnv, "env_kwargs": {"game": "pong"}}


def evaluated(horizon, eval_max_trajectories):
    """Return what samplers of evaluated games are given; a horizon is said where games are cut short."""
    env_kwargs = {"game": "pong"} if horizon is None else {"game": "pong", "horizon": horizon}
    counts = {"eval_n_envs": 10, "eval_max_steps": 10_000, "eval_max_trajectories": eval_max_trajectories}
    return {"EnvCls": AtariEnv, "env_kwargs": env_kwargs, "eval_env_kwargs": env_kwargs, **counts}


def example_1(n_steps=50e6, log_interval_steps=1e3, horizon=None, cuda_idx=None, **algo):
    """DQN on one game, all in one process."""
    sampler = SerialSampler(
        **evaluated(horizon, 5),
        TrajInfoCls=AtariTrajInfo,
        batch_T=4,
        batch_B=1,
        max_decorrelation_steps=0,
    )
    return MinibatchRlEval(
        algo=DQN(**{"min_steps_learn": 1e3, **algo}),
        agent=AtariDqnAgent(),
        sampler=sampler,
        n_steps=n_steps,
        log_interval_steps=log_interval_steps,
        affinity={"cuda_idx": cuda_idx},
    )


def example_2(env_id="Hopper-v5", n_steps=1e6, log_interval_steps=1e4, eval_max_trajectories=50, **algo):
    """SAC on one env of MuJoCo; Gymnasium has no Hopper-v3 any more."""
    sampler = SerialSampler(
        EnvCls=gym_make,
        env_kwargs={"id": env_id},
        eval_env_kwargs={"id": env_id},
        batch_T=1,
        batch_B=1,
        max_decorrelation_steps=0,
        eval_n_envs=10,
        eval_max_steps=51_000,
        eval_max_trajectories=eval_max_trajectories,
    )
    affinity = {"cuda_idx": None}
    return MinibatchRlEval(SAC(**algo), SacAgent(), sampler, n_steps, None, affinity, log_interval_steps)


SAMPLERS = {"serial": SerialSampler, "cpu": CpuSampler, "gpu": GpuSampler, "alternating": AlternatingSampler}


def example_3(sample_mode="serial", n_parallel=2, n_steps=50e6, log_interval_steps=1e5):
    """A2C on sixteen games, with any of the samplers."""
    affinity = {"cuda_idx": None, "workers_cpus": list(range(n_parallel))}
    if sample_mode == "alternating":
        affinity["workers_cpus"] += affinity["workers_cpus"]
        affinity["alternating"] = True
    sampler = SAMPLERS[sample_mode](
        **PONG, TrajInfoCls=AtariTrajInfo, batch_T=5, batch_B=16, max_decorrelation_steps=400
    )
    keys = {"n_steps": n_steps, "log_interval_steps": log_interval_steps, "affinity": affinity}
    return MinibatchRl(algo=A2C(), agent=AtariFfAgent(), sampler=sampler, **keys)


def example_4(mid_batch_reset=False, n_parallel=2, n_steps=50e6, log_interval_steps=1e5):
    """A2C with an LSTM on single frames of sixteen games."""
    sampler = GpuSampler(
        EnvCls=AtariEnv,
        env_kwargs={"game": "pong", "num_img_obs": 1},
        TrajInfoCls=AtariTrajInfo,
        CollectorCls=GpuResetCollector if mid_batch_reset else GpuWaitResetCollector,
        batch_T=20,
        batch_B=16,
        max_decorrelation_steps=400,
    )
    affinity = {"cuda_idx": None, "workers_cpus": list(range(n_parallel))}
    keys = {"n_steps": n_steps, "log_interval_steps": log_interval_steps, "affinity": affinity}
    return MinibatchRl(algo=A2C(), agent=AtariLstmAgent(), sampler=sampler, **keys)


def example_5(n_parallel=2, n_steps=50e6, log_interval_steps=1e3, horizon=None, **algo):
    """DQN on thirty-two games with larger minibatches."""
    sampler = GpuSampler(
        **evaluated(horizon, 5),
        TrajInfoCls=AtariTrajInfo,
        CollectorCls=GpuWaitResetCollector,
        batch_T=2,
        batch_B=32,
        max_decorrelation_steps=0,
    )
    affinity = {"cuda_idx": None, "workers_cpus": list(range(n_parallel))}
    keys = {"n_steps": n_steps, "log_interval_steps": log_interval_steps, "affinity": affinity}
    return MinibatchRlEval(algo=DQN(**{"batch_size": 128, **algo}), agent=AtariDqnAgent(), sampler=sampler, **keys)


def example_6(runs_per_setting=2, n_steps=50e6, log_interval_steps=1e5, games=("pong", "seaquest")):
    """Two settings of A2C on two games, twice each, two runs side by side."""
    rates = VariantLevel(
        keys=[("algo", "learning_rate"), ("sampler", "batch_B")],
        values=[(7e-4, 16), (1e-3, 32)],
        dir_names=["example6_0.0007lr_16B", "example6_0.001lr_32B"],
    )
    of_games = VariantLevel(keys=[("env", "game")], values=[(game,) for game in games], dir_names=list(games))
    variants, log_dirs = make_variants(rates, of_games)
    run_experiments(
        script=__file__,
        affinity_code=encode_affinity(n_cpu_core=2, n_gpu=0, cpu_per_run=1),
        experiment_title="example_6",
        runs_per_setting=runs_per_setting,
        variants=variants,
        log_dirs=log_dirs,
        common_args=(n_steps, log_interval_steps),
    )


def example_6a(slot_affinity_code, log_dir, run_id, n_steps, log_interval_steps):
    """One of the runs of example 6."""
    config = {"env": {"game": "pong"}, "algo": {"learning_rate": 7e-4}, "sampler": {"batch_B": 16}}
    config = update_config(config, load_variant(log_dir))
    sampler = GpuSampler(
        EnvCls=AtariEnv,
        env_kwargs=config["env"],
        CollectorCls=GpuWaitResetCollector,
        batch_T=5,
        max_decorrelation_steps=400,
        **config["sampler"],
    )
    runner = MinibatchRl(
        algo=A2C(**config["algo"]),
        agent=AtariFfAgent(),
        sampler=sampler,
        n_steps=n_steps,
        log_interval_steps=log_interval_steps,
        affinity=affinity_from_code(slot_affinity_code),
    )
    with logger_context(log_dir, run_id, "a2c", config):
        runner.train()
    print(json.dumps(config))


def example_7(affinity, n_steps=50e6, log_interval_steps=1e5):
    """A2C in several processes that step together."""
    sampler = GpuSampler(**PONG, CollectorCls=GpuWaitResetCollector, batch_T=5, batch_B=16, max_decorrelation_steps=400)
    keys = {"n_steps": n_steps, "log_interval_steps": log_interval_steps, "affinity": affinity}
    return SyncRl(algo=A2C(), agent=AtariFfAgent(), sampler=sampler, **keys)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs=5)
    slot, folder, number, *lengths = parser.parse_args(sys.argv[1:]).words
    example_6a(slot, folder, number, *map(float, lengths))
