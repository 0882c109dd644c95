"""Speed of Stable-Baselines3's DQN, SAC and TD3: `model.learn` with a callback that takes the times, logging off."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from off_policy import EPSILON_FRAMES, OffPolicy, Stopwatch, off_policy_parser, start
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecFrameStack


class Timer(BaseCallback):
    """Notes the time when a rollout begins: the updates of the frames before are made."""

    def __init__(self, watch: Stopwatch) -> None:
        super().__init__()
        self._watch = watch

    def _on_rollout_start(self) -> None:
        self._watch.at(self.num_timesteps)

    def _on_step(self) -> bool:
        return True


def make_model(name: str, work: OffPolicy, frames: int, seed: int) -> BaseAlgorithm:
    """Make the algorithm with the constants of a workload."""
    pixels = name == "dqn-pong"
    env = VecFrameStack(make_atari_env(work.env_id, 1, seed), 4) if pixels else gymnasium.make(work.env_id)
    shared: dict[str, Any] = {
        "policy": "CnnPolicy" if pixels else "MlpPolicy",
        "env": env,
        "learning_rate": work.critic_lr if name.startswith("dqn") else work.actor_lr,
        "buffer_size": work.capacity,
        "learning_starts": work.warmup,
        "batch_size": work.minibatch,
        "gamma": work.gamma,
        "train_freq": work.frames_per_update,
        "gradient_steps": 1,
        "policy_kwargs": {} if pixels else {"net_arch": list(work.hidden)},
        "device": "auto",
        "seed": seed,
    }
    if name.startswith("dqn"):
        explored = min(1.0, EPSILON_FRAMES / frames)
        end = 1 - 0.95 * min(1.0, frames / EPSILON_FRAMES)
        limits = {"exploration_fraction": explored, "exploration_final_eps": end, "max_grad_norm": float("inf")}
        if pixels:  # each frame is stored once for a step and the next, as far as Stable-Baselines3 does that
            limits["optimize_memory_usage"] = True
            shared["replay_buffer_kwargs"] = {"handle_timeout_termination": False}
        return DQN(**shared, **limits, target_update_interval=1_000 if pixels else 500)
    if name.startswith("sac"):
        return SAC(**shared, tau=work.tau)
    size = env.action_space.shape[0]
    noise = NormalActionNoise(np.zeros(size), 0.1 * np.ones(size))
    return TD3(**shared, tau=work.tau, policy_delay=work.actor_every, action_noise=noise)


def main() -> None:
    args = off_policy_parser(__doc__).parse_args()
    if args.compile or args.workload.startswith("redq"):
        raise SystemExit("sb3: it compiles nothing, and it has no REDQ")
    work = start(args)
    if args.workload == "dqn-pong":
        import ale_py

        gymnasium.register_envs(ale_py)
    watch, frames = Stopwatch(work), work.begin + (args.frames or work.peer_frames)
    make_model(args.workload, work, frames, args.seed).learn(frames + work.frames_per_update, Timer(watch))
    watch.report("sb3", args)


if __name__ == "__main__":
    main()
