"""What the peer benchmarks share: workloads, flags, threads, times per phase, the environment and the JSON line.

Every peer script trains PPO on one workload and prints one JSON line. Only collecting frames and updating the networks
is timed; building the objects, the first batches (`WARMUP_BATCHES`) and reading out returns are not.

| key | meaning |
|---|---|
| frames_per_s | frames of all timed batches divided by the seconds they took |
| frames_per_s_median, frames_per_s_best | the same from the median and from the fastest batch |
| ms_collect | milliseconds to collect one batch, median over the batches |
| ms_update | milliseconds per optimizer step, everything after the collection included, median over the batches |
| return_last | mean return of the last 20 episodes seen while training |
| return_last_100 | the same of the last 100 |
| peak_rss_mib | largest resident memory of the process |
| other_cpu | CPU seconds per second that anything but this process used (or the hypervisor took) during the run |
"""

import argparse
import functools
import itertools
import json
import logging
import math
import os
import random
import resource
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

WARMUP_BATCHES = 2
LAST_EPISODES = 20

Schedule = Callable[[float], float]
"""Maps the finished share of a run, from 0 to 1, to a factor on the learning rate."""


def constant(progress: float) -> float:
    """Keep the learning rate."""
    return 1.0


def linear(progress: float) -> float:
    """Lower the learning rate in equal steps to zero."""
    return 1.0 - progress


def cosine(progress: float) -> float:
    """Lower the learning rate to zero along half a cosine."""
    return 0.5 * (1.0 + math.cos(math.pi * progress))


@dataclass(frozen=True)
class Workload:
    """Environment, batch shape and PPO constants of one benchmark."""

    env_id: str
    envs: int
    steps: int
    minibatch: int
    epochs: int
    hidden: tuple[int, ...]
    learning_rate: float
    schedule: Schedule
    max_grad_norm: float
    entropy_coef: float
    value_coef: float
    clip_value: bool
    default_frames: int
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2

    @property
    def batch(self) -> int:
        """Frames collected between two updates."""
        return self.envs * self.steps

    @property
    def is_idp(self) -> bool:
        """Whether this is the continuous task, whose observations are normalised."""
        return self.env_id == IDP


IDP = "InvertedDoublePendulum-v5"

WORKLOADS = {
    # the settings of TorchRL's PPO tutorial
    "idp": Workload(
        env_id=IDP,
        envs=1,
        steps=1000,
        minibatch=64,
        epochs=10,
        hidden=(256, 256, 256),
        learning_rate=3e-4,
        schedule=constant,
        max_grad_norm=1.0,
        entropy_coef=1e-4,
        value_coef=1.0,
        clip_value=False,
        default_frames=21_000,
    ),
    # the defaults of CleanRL's ppo.py
    "cartpole": Workload(
        env_id="CartPole-v1",
        envs=4,
        steps=128,
        minibatch=128,
        epochs=4,
        hidden=(64, 64),
        learning_rate=2.5e-4,
        schedule=linear,
        max_grad_norm=0.5,
        entropy_coef=0.01,
        value_coef=0.5,
        clip_value=True,
        default_frames=51_200,
    ),
}
# the second with 64 environments
WORKLOADS["cartpole64"] = replace(WORKLOADS["cartpole"], envs=64, minibatch=2048, default_frames=131_072)


def peer_parser(description: str | None, workloads: Sequence[str] = tuple(WORKLOADS)) -> argparse.ArgumentParser:
    """Make the parser with the flags that all peer scripts have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=workloads, required=True)
    add_run_flags(parser)
    parser.add_argument("--frames", type=int, help="frames to train for, warm-up included (default: by workload)")
    return parser


def add_run_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags `prepare` reads."""
    parser.add_argument("--threads", type=int, default=1, help="threads of torch's operators (default: 1)")
    parser.add_argument("--seed", type=int, default=1)


def prepare(args: argparse.Namespace) -> None:
    """Fix the number of threads and the global seeds, and silence warnings and log messages."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(args.threads)
    torch.set_num_interop_threads(1)
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)


def whole_batches(workload: Workload, frames: int | None, at_least: int = WARMUP_BATCHES + 1) -> int:
    """Round a number of frames down to whole batches.

    Raises:
        SystemExit: fewer than `at_least` batches remain.
    """
    batches = (frames or workload.default_frames) // workload.batch
    if batches < at_least:
        raise SystemExit(
            f"--frames must be at least {at_least * workload.batch}: {at_least} batches of {workload.batch}"
        )
    return batches * workload.batch


clock = time.perf_counter


@dataclass
class Phases:
    """Seconds spent collecting and updating, one entry per batch, and the optimizer steps of each update.

    Optimizer steps are counted by a hook on all torch optimizers, so the counts are what the peer really did. Whoever
    counts them itself switches that off: rlcore takes the slower way where somebody watches its optimizers.
    """

    batch: int
    counts_steps: bool = True
    collect: list[float] = field(default_factory=list)
    update: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    _pending: int = 0

    def __post_init__(self) -> None:
        if self.counts_steps:
            register_optimizer_step_post_hook(self._count)

    def _count(self, *_: Any) -> None:
        self._pending += 1

    def add(self, collect: float, update: float) -> None:
        """Note one batch."""
        self.collect.append(collect)
        self.update.append(update)
        self.steps.append(self._pending)
        self._pending = 0

    def figures(self, skip: int = WARMUP_BATCHES) -> dict[str, float]:
        """Summarise the batches after the first `skip`."""
        collect, update, steps = self.collect[skip:], self.update[skip:], self.steps[skip:]
        totals = [c + u for c, u in zip(collect, update, strict=True)]
        return {
            "frames_per_s": len(totals) * self.batch / sum(totals),
            "frames_per_s_median": self.batch / statistics.median(totals),
            "frames_per_s_best": self.batch / min(totals),
            "ms_collect": 1e3 * statistics.median(collect),
            "ms_update": 1e3 * statistics.median(u / n for u, n in zip(update, steps, strict=True)),
            "updates_per_batch": statistics.median_low(steps),
            "batches_timed": len(totals),
        }


class CpuTimes(NamedTuple):
    """Wall clock, busy CPU seconds of the machine and CPU seconds of this process, at one moment."""

    wall: float
    machine: float | None
    own: float


def _machine_busy() -> float | None:
    """Busy CPU seconds of all cores since boot, stolen time included; None where /proc/stat is missing."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.read_text().split(maxsplit=9)[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _cpu_times() -> CpuTimes:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return CpuTimes(time.time(), _machine_busy(), sum(usage.ru_utime + usage.ru_stime for usage in used))


_AT_START = _cpu_times()


def other_cpu() -> float | None:
    """CPU seconds per second used by others since this module was imported; None where it cannot be told."""
    now = _cpu_times()
    if now.machine is None or _AT_START.machine is None:
        return None
    others = (now.machine - _AT_START.machine) - (now.own - _AT_START.own)
    return round(others / (now.wall - _AT_START.wall), 3)


def peak_rss_mib() -> int:
    """Largest resident memory of this process (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def emit(**values: Any) -> None:
    """Print the result as one JSON line, with the memory and the interference of the run."""
    values |= {"peak_rss_mib": peak_rss_mib(), "other_cpu": other_cpu()}
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
    print(json.dumps(rounded), flush=True)


def report(peer: str, args: argparse.Namespace, phases: Phases, returns: Sequence[float]) -> None:
    """Print the JSON line of a peer script."""
    last = list(returns)[-LAST_EPISODES:]
    emit(
        peer=peer,
        workload=args.workload,
        threads=args.threads,
        seed=args.seed,
        **phases.figures(),
        frames=len(phases.collect) * phases.batch,
        return_last=float(np.mean(last)) if last else None,
        return_last_100=float(np.mean(list(returns)[-100:])) if last else None,
    )


def tanh_mlp(inputs: int, outputs: int, hidden: Sequence[int], output_gain: float | None) -> nn.Sequential:
    """Make a tanh network with orthogonal weights and zero biases, or with torch's own initialisation.

    Args:
        inputs: width of the input.
        outputs: width of the output.
        hidden: widths of the hidden layers.
        output_gain: gain of the last layer's orthogonal weights; None leaves all layers as torch makes them.
    """
    widths = [inputs, *hidden]
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.Tanh()]
    network = nn.Sequential(*layers, nn.Linear(widths[-1], outputs))
    if output_gain is not None:
        orthogonal(network, output_gain)
    return network


def orthogonal(module: nn.Module, output_gain: float) -> None:
    """Give all linear layers of a module orthogonal weights and zero biases; the last one has its own gain."""
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    for layer in layers:
        nn.init.orthogonal_(layer.weight, output_gain if layer is layers[-1] else math.sqrt(2))
        nn.init.zeros_(layer.bias)


class Statistics(NamedTuple):
    """Mean and standard deviation of each observed value, float32."""

    mean: np.ndarray
    std: np.ndarray

    def normalize(self, observation: np.ndarray) -> np.ndarray:
        """Return the observation in float32, shifted and scaled."""
        return (observation.astype(np.float32) - self.mean) / self.std


@functools.cache
def idp_statistics(seed: int, frames: int = 1000) -> Statistics:
    """Measure the observations of the pendulum over some frames of random actions."""
    env = gymnasium.make(IDP)
    env.action_space.seed(seed)
    env.reset(seed=seed)
    seen = []
    for _ in range(frames):
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(observation)
        if terminated or truncated:
            env.reset()
    env.close()
    stacked = np.stack(seen)
    return Statistics(stacked.mean(0).astype(np.float32), (stacked.std(0) + 1e-6).astype(np.float32))


class NormalizedObservation(gymnasium.ObservationWrapper):
    """Environment whose observations are float32 and normalised with fixed statistics."""

    def __init__(self, env: gymnasium.Env, stats: Statistics) -> None:
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, env.observation_space.shape, np.float32)
        self._stats = stats

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return self._stats.normalize(observation)


def make_env(workload: Workload, seed: int) -> gymnasium.Env:
    """Make one environment of a workload as the peers other than TorchRL and CleanRL get it."""
    env = gymnasium.make(workload.env_id)
    return NormalizedObservation(env, idp_statistics(seed)) if workload.is_idp else env
