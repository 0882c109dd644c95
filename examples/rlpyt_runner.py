"""A launch script of rlpyt with its imports changed: DQN, A2C or PPO on CartPole, and SAC on Pendulum.

python rlpyt_runner.py --runner MinibatchRlEval --algo dqn
python rlpyt_runner.py --runner AsyncRl --algo ppo
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import rlcore_plugin_runners as rlpyt
from rlcore_plugin_runners import logger_context, make_affinity

ALGOS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "a2c": lambda: (rlpyt.A2C(), rlpyt.FfAgent()),
    "ppo": lambda: (rlpyt.PPO(), rlpyt.FfAgent()),
    "dqn": lambda: (rlpyt.DQN(min_steps_learn=256, replay_size=10_000), rlpyt.DqnAgent(eps_itr_max=200)),
    "sac": lambda: (rlpyt.SAC(min_steps_learn=256, replay_size=10_000, replay_ratio=64), rlpyt.SacAgent()),
}


def build_and_train(runner: str, algo: str, n_steps: float, run_ID: int) -> None:  # noqa: N803, as rlpyt's examples
    """Train as the command line says."""
    affinity = make_affinity(cpu_per_run=1, set_affinity=False)  # one thread: the networks are small
    sampler_class = rlpyt.AsyncCpuSampler if runner.startswith("Async") else rlpyt.SerialSampler
    env_id = "Pendulum-v1" if algo == "sac" else "CartPole-v1"
    sampler = sampler_class(
        EnvCls=rlpyt.gym_make,
        env_kwargs={"id": env_id},
        eval_env_kwargs={"id": env_id},
        batch_T=16,
        batch_B=8,
        max_decorrelation_steps=0,
        eval_n_envs=4,
        eval_max_trajectories=8,
    )
    algorithm, agent = ALGOS[algo]()
    trainer = getattr(rlpyt, runner)(
        algo=algorithm, agent=agent, sampler=sampler, n_steps=n_steps, log_interval_steps=1e3, affinity=affinity
    )
    with logger_context(f"example_{algo}", run_ID, f"{algo}_{env_id}", {"env": env_id}, snapshot_mode="last") as log:
        trainer.train()
    print(f"{log.folder}/progress.csv")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--runner", default="MinibatchRlEval")
    parser.add_argument("--algo", choices=list(ALGOS), default="dqn")
    parser.add_argument("--n-steps", type=float, default=50e3)
    parser.add_argument("--run-ID", type=int, default=0)
    args = parser.parse_args()
    build_and_train(args.runner, args.algo, args.n_steps, args.run_ID)
