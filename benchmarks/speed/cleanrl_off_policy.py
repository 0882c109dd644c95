"""Speed of CleanRL's DQN, SAC and TD3: the installed scripts run as they are and are timed from outside.

As in `cleanrl_ppo.py`, stand-ins take the place of older environment libraries and of the TensorBoard writer while a
script of CleanRL 1.2.0 runs. A frame and the update that follows it end with the next environment step.
"""

import contextlib
import os
import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
import torch.utils.tensorboard
from cleanrl_ppo import NoWriter, SeedableStatistics
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from off_policy import EPSILON_FRAMES, OffPolicy, Stopwatch, off_policy_parser, start

SCRIPTS = {
    "dqn-cartpole": "cleanrl.dqn",
    "sac-halfcheetah": "cleanrl.sac_continuous_action",
    "td3-halfcheetah": "cleanrl.td3_continuous_action",
}


def timed_env(watch: Stopwatch) -> type[SyncVectorEnv]:
    """Make the vector environment of `dqn.py`; it tells the clock of every step."""

    class TimedEnv(SyncVectorEnv):
        """Resets an environment in the step that ends its episode, and names the last observation as it was named."""

        def __init__(self, env_fns: Any) -> None:
            super().__init__(env_fns, autoreset_mode=AutoresetMode.SAME_STEP)
            self.taken = 0

        def step(self, actions: np.ndarray) -> tuple[Any, ...]:
            watch.at(self.taken)
            self.taken += 1
            *result, infos = super().step(actions)
            if "final_obs" in infos:
                episode = infos["final_info"]["episode"]
                infos["final_observation"] = infos["final_obs"]
                infos["final_info"] = [{"episode": {key: episode[key][0] for key in ("r", "l")}}]
            return (*result, infos)

    return TimedEnv


def old_env(watch: Stopwatch) -> type[SyncVectorEnv]:
    """Make the vector environment of the other scripts, whose reset and step return fewer values."""

    class OldEnv(timed_env(watch)):
        """Returns one `done` array from a step, and an info for its one environment."""

        def reset(self) -> np.ndarray:
            return super().reset()[0]

        def step(self, actions: np.ndarray) -> tuple[Any, ...]:
            observations, rewards, terminated, truncated, infos = super().step(actions)
            info = {}
            if "final_obs" in infos:
                last = {"terminal_observation": infos["final_obs"][0], "TimeLimit.truncated": bool(truncated[0])}
                info = infos["final_info"][0] | last
            return observations, rewards, terminated | truncated, [info]

    return OldEnv


def old_gym(watch: Stopwatch) -> ModuleType:
    """Make a module `gym` with what the scripts use of it."""
    module = ModuleType("gym")
    module.make = gymnasium.make
    module.spaces = gymnasium.spaces
    module.vector = SimpleNamespace(SyncVectorEnv=old_env(watch))
    module.wrappers = SimpleNamespace(RecordEpisodeStatistics=SeedableStatistics)
    return module


def flags(name: str, work: OffPolicy, frames: int, seed: int) -> list[str]:
    """List the command line that gives a script the constants of a workload; other widths than 256 it has itself."""
    found: dict[str, Any] = {
        "env-id": work.env_id,
        "seed": seed,
        "cuda": False,
        "total-timesteps": frames,
        "buffer-size": work.capacity,
        "learning-starts": work.warmup,
        "batch-size": work.minibatch,
        "gamma": work.gamma,
    }
    if name.startswith("dqn"):
        found |= {"learning-rate": work.critic_lr, "train-frequency": work.frames_per_update}
        found |= {"exploration-fraction": EPSILON_FRAMES / frames, "target-network-frequency": 500}
    elif name.startswith("sac"):
        found |= {"policy-lr": work.actor_lr, "q-lr": work.critic_lr, "policy-frequency": work.actor_every}
        found |= {"tau": work.tau}
    else:
        found |= {"learning-rate": work.critic_lr, "policy-frequency": work.actor_every, "tau": work.tau}
    return [f"--{key}={value}" for key, value in found.items()]


def main() -> None:
    args = off_policy_parser(__doc__).parse_args()
    if args.compile or args.workload not in SCRIPTS:
        raise SystemExit("cleanrl: it compiles nothing, and it has no REDQ")
    work = start(args)
    watch, frames = Stopwatch(work), work.begin + (args.frames or work.peer_frames)
    name = SCRIPTS[args.workload]
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        mock.patch.object(sys, "argv", [name, *flags(args.workload, work, frames, args.seed)]),
        mock.patch.object(torch.utils.tensorboard, "SummaryWriter", NoWriter),
        mock.patch.object(gymnasium.vector, "SyncVectorEnv", timed_env(watch)),
        mock.patch.dict(sys.modules, gym=old_gym(watch)),
    ):
        runpy.run_module(name, run_name="__main__")
    watch.report("cleanrl", args)


if __name__ == "__main__":
    main()
