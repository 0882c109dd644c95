"""Speed of CleanRL's PPO: the installed scripts run as they are and are timed from outside.

CleanRL 1.2.0 runs `ppo.py` for CartPole and `ppo_continuous_action.py` for the pendulum. Both were written for older
environment libraries, so this runner puts a few stand-ins in place while a script runs:

- a module `gym` on top of Gymnasium, with the calls that `ppo.py` makes;
- a vector environment that resets within the step, as both scripts expect, and notes the times;
- for the pendulum, networks with the three layers of 256 units that the other peers have there;
- a TensorBoard writer that writes nothing, since the other peers run without logging too.

A batch lasts from its first environment step to the first one of the next batch. Its collection ends with its last
environment step; the policy's choice of the first action is therefore counted with the update before it.
"""

import contextlib
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
import torch.utils.tensorboard
from common import WORKLOADS, Phases, Workload, clock, peer_parser, prepare, report, tanh_mlp, whole_batches
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn


class StepTimer:
    """Turns the times of environment steps into the phases of batches."""

    def __init__(self, workload: Workload) -> None:
        self.phases = Phases(workload.batch)
        self.returns: list[float] = []
        self._steps = workload.steps
        self._taken = 0
        self._started: float | None = None
        self._collected = 0.0

    def before_step(self) -> None:
        """Begin a batch if this is its first step."""
        if self._taken == 0:
            self.finish()
            self._started = clock()

    def after_step(self) -> None:
        """Count the step; the last one ends the collection."""
        self._taken += 1
        if self._taken == self._steps:
            self._taken = 0
            self._collected = clock()

    def finish(self) -> None:
        """Close the batch in progress, if any."""
        if self._started is not None:
            self.phases.add(self._collected - self._started, clock() - self._collected)
            self._started = None


def ended_infos(infos: dict[str, Any], envs: int) -> list[dict[str, Any] | None]:
    """Split the infos of ended episodes into one dictionary per environment, None where no episode ended."""
    ended, episode = infos["_final_info"], infos["final_info"]["episode"]
    return [
        {"episode": {key: episode[key][index] for key in ("r", "l", "t")}} if ended[index] else None
        for index in range(envs)
    ]


def same_step_env(timer: StepTimer) -> type[SyncVectorEnv]:
    """Make the vector environment of `ppo_continuous_action.py`."""

    class SameStepEnv(SyncVectorEnv):
        """Resets an environment in the step that ends its episode and lists the infos of the ended ones."""

        def __init__(self, env_fns: Sequence[Callable[[], gymnasium.Env]]) -> None:
            super().__init__(env_fns, autoreset_mode=AutoresetMode.SAME_STEP)

        def step(self, actions: np.ndarray) -> tuple[Any, ...]:
            timer.before_step()
            *result, infos = super().step(actions)
            if "final_info" in infos:
                infos["final_info"] = ended_infos(infos, self.num_envs)
                timer.returns += [float(info["episode"]["r"]) for info in infos["final_info"] if info]
            timer.after_step()
            return (*result, infos)

        def close_extras(self, **kwargs: Any) -> None:
            timer.finish()
            super().close_extras(**kwargs)

    return SameStepEnv


def old_step_env(timer: StepTimer) -> type[SyncVectorEnv]:
    """Make the vector environment of `ppo.py`, whose reset and step return fewer values."""

    class OldStepEnv(same_step_env(timer)):
        """Returns one `done` array from a step and one info per environment."""

        def reset(self) -> np.ndarray:
            return super().reset()[0]

        def step(self, actions: np.ndarray) -> tuple[Any, ...]:
            observations, rewards, terminated, truncated, infos = super().step(actions)
            ended = infos.get("final_info") or [None] * self.num_envs
            return observations, rewards, terminated | truncated, [info or {} for info in ended]

    return OldStepEnv


class SeedableStatistics(gymnasium.wrappers.RecordEpisodeStatistics):
    """Episode statistics with the method `seed` that environments had before Gymnasium."""

    def seed(self, seed: int) -> None:
        """Seed the environment; later resets without a seed go on from there."""
        self.reset(seed=seed)


class SameSpaceTransform(gymnasium.wrappers.TransformObservation):
    """Transformed observations without the space that Gymnasium 1 asks for: it stays what it was."""

    def __init__(self, env: gymnasium.Env, func: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__(env, func, env.observation_space)


class NoWriter:
    """Stands in for the TensorBoard writer."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.add_text = self.add_scalar = self.close = lambda *_: None


def old_gym(timer: StepTimer) -> ModuleType:
    """Make a module `gym` with what `ppo.py` uses of it."""
    module = ModuleType("gym")
    module.make = gymnasium.make
    module.spaces = gymnasium.spaces
    module.vector = SimpleNamespace(SyncVectorEnv=old_step_env(timer))
    module.wrappers = SimpleNamespace(RecordEpisodeStatistics=SeedableStatistics)
    return module


def wider_sequential(hidden: Sequence[int]) -> type[nn.Sequential]:
    """Make a `Sequential` that swaps the scripts' networks for tanh networks with other hidden layers."""

    class WiderSequential(nn.Sequential):
        """Keeps the widths of input and output and the gain of the last layer."""

        def __init__(self, *layers: nn.Module) -> None:
            kinds = [type(layer) for layer in layers]
            if kinds == [nn.Linear, nn.Tanh, nn.Linear, nn.Tanh, nn.Linear]:
                first, last = layers[0], layers[-1]
                gain = last.weight.norm(dim=1).mean().item()  # orthogonal rows are as long as the gain
                with mock.patch.object(nn, "Sequential", original):
                    layers = tuple(tanh_mlp(first.in_features, last.out_features, hidden, gain))
            super().__init__(*layers)

    original = nn.Sequential
    return WiderSequential


@contextlib.contextmanager
def stand_ins(workload: Workload, timer: StepTimer) -> Iterator[None]:
    """Put the stand-ins of a workload in place for the time of the block."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch.utils.tensorboard, "SummaryWriter", NoWriter))
        if workload.is_idp:
            stack.enter_context(mock.patch.object(gymnasium.vector, "SyncVectorEnv", same_step_env(timer)))
            stack.enter_context(mock.patch.object(gymnasium.wrappers, "TransformObservation", SameSpaceTransform))
            stack.enter_context(mock.patch.object(nn, "Sequential", wider_sequential(workload.hidden)))
        else:
            stack.enter_context(mock.patch.dict(sys.modules, gym=old_gym(timer)))
        yield


def script_flags(workload: Workload, frames: int, seed: int) -> list[str]:
    """List the command line that gives a script the constants of a workload."""
    flags = {
        "env-id": workload.env_id,
        "seed": seed,
        "cuda": False,
        "total-timesteps": frames,
        "num-envs": workload.envs,
        "num-steps": workload.steps,
        "num-minibatches": workload.batch // workload.minibatch,
        "update-epochs": workload.epochs,
        "learning-rate": workload.learning_rate,
        "anneal-lr": workload.schedule(0.5) != 1.0,
        "gamma": workload.gamma,
        "gae-lambda": workload.gae_lambda,
        "clip-coef": workload.clip,
        "clip-vloss": workload.clip_value,
        "ent-coef": workload.entropy_coef,
        "vf-coef": workload.value_coef,
        "max-grad-norm": workload.max_grad_norm,
    }
    return [f"--{name}={value}" for name, value in flags.items()]


def run_script(name: str, argv: list[str], stands: contextlib.AbstractContextManager[object]) -> None:
    """Run a script to its end, within what stands in for older libraries; what it prints is dropped."""
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        mock.patch.object(sys, "argv", [name, *argv]),
        stands,
    ):
        runpy.run_module(name, run_name="__main__")


def main() -> None:
    args = peer_parser(__doc__).parse_args()
    workload = WORKLOADS[args.workload]
    frames = whole_batches(workload, args.frames)
    prepare(args)
    timer = StepTimer(workload)
    name = "cleanrl.ppo_continuous_action" if workload.is_idp else "cleanrl.ppo"
    run_script(name, script_flags(workload, frames, args.seed), stand_ins(workload, timer))
    report("cleanrl", args, timer.phases, timer.returns)


if __name__ == "__main__":
    main()
