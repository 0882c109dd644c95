"""Speed of Stable-Baselines3's PPO: `model.learn` with a callback that takes the times, logging off.

The advantages count as collection, because Stable-Baselines3 computes them at the end of a rollout.
"""

from typing import Any

from common import WORKLOADS, Phases, Schedule, Workload, clock, make_env, peer_parser, prepare, report, whole_batches
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn


class PhaseTimer(BaseCallback):
    """Notes when each rollout begins and ends; what lies between two rollouts is the update."""

    def __init__(self, phases: Phases) -> None:
        super().__init__()
        self._phases = phases
        self._started = 0.0
        self._collected: float | None = None

    def _close_batch(self, now: float) -> None:
        if self._collected is not None:
            self._phases.add(self._collected - self._started, now - self._collected)

    def _on_rollout_start(self) -> None:
        self._close_batch(clock())
        self._started = clock()

    def _on_rollout_end(self) -> None:
        self._collected = clock()

    def _on_training_end(self) -> None:
        self._close_batch(clock())

    def _on_step(self) -> bool:
        return True


def settings(workload: Workload, seed: int, schedule: Schedule) -> dict[str, Any]:
    """Return the arguments of PPO that are constants of a workload."""
    return {
        "n_steps": workload.steps,
        "batch_size": workload.minibatch,
        "n_epochs": workload.epochs,
        "learning_rate": lambda remaining: workload.learning_rate * schedule(1.0 - remaining),
        "gamma": workload.gamma,
        "gae_lambda": workload.gae_lambda,
        "clip_range": workload.clip,
        "clip_range_vf": workload.clip if workload.clip_value else None,
        "ent_coef": workload.entropy_coef,
        "vf_coef": workload.value_coef / 2,  # of all of the squared error, where the others take half of it
        "max_grad_norm": workload.max_grad_norm,
        "device": "auto",
        "seed": seed,
        "verbose": 0,
    }


def make_model(workload: Workload, seed: int, schedule: Schedule) -> PPO:
    """Make the environments and PPO with the constants of a workload; its weights are orthogonal by default."""
    envs = DummyVecEnv([lambda: Monitor(make_env(workload, seed)) for _ in range(workload.envs)])
    hidden = list(workload.hidden)
    networks = {"net_arch": {"pi": hidden, "vf": hidden}, "activation_fn": nn.Tanh}
    return PPO("MlpPolicy", envs, policy_kwargs=networks, **settings(workload, seed, schedule))


def main() -> None:
    args = peer_parser(__doc__).parse_args()
    workload = WORKLOADS[args.workload]
    frames = whole_batches(workload, args.frames)
    prepare(args)
    phases = Phases(workload.batch)
    model = make_model(workload, args.seed, workload.schedule)
    model.learn(total_timesteps=frames, callback=PhaseTimer(phases))
    report("sb3", args, phases, [episode["r"] for episode in model.ep_info_buffer])


if __name__ == "__main__":
    main()
