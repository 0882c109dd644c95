"""What the off-policy benchmarks share: workloads, and the clock that counts the training phase alone.

A script prints one JSON line. `frames_per_s` is of the frames after the warm-up, in which nothing is updated, and after
the first updates, in which a compiled one is compiled: env, policy, replay and updates together.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from common import add_run_flags, clock, emit, prepare
from pong import PONG


@dataclass(frozen=True)
class OffPolicy:
    """Environment, sizes and constants of one benchmark.

    Attributes:
        frames_per_update: env frames between two updates of one minibatch.
        actor_every: updates between two of the actor.
        subset: critics whose least value is the target.
        threads: of torch's operators.
        frames: timed, by default.
        peer_frames: the same of the peers, which are slower.
    """

    env_id: str
    hidden: tuple[int, ...]
    minibatch: int
    capacity: int
    warmup: int
    frames_per_update: int = 1
    critics: int = 2
    subset: int = 2
    actor_every: int = 1
    actor_lr: float = 3e-4
    critic_lr: float = 1e-3
    gamma: float = 0.99
    tau: float = 0.005
    threads: int = 2
    frames: int = 3_000
    peer_frames: int = 1_500

    @property
    def begin(self) -> int:
        """The frame from which on time counts: a hundred updates after the warm-up."""
        return self.warmup + 100 * self.frames_per_update


CHEETAH = "HalfCheetah-v5"
WORKLOADS = {
    # the settings of CleanRL's dqn.py
    "dqn-cartpole": OffPolicy(
        "CartPole-v1",
        (120, 84),
        128,
        10_000,
        10_000,
        10,
        threads=1,
        critic_lr=2.5e-4,
        frames=60_000,
        peer_frames=20_000,
    ),
    "sac-halfcheetah": OffPolicy(CHEETAH, (256, 256), 256, 1_000_000, 1_000),
    "td3-halfcheetah": OffPolicy(CHEETAH, (256, 256), 256, 1_000_000, 1_000, actor_every=2, critic_lr=3e-4),
    "redq-halfcheetah": OffPolicy(
        CHEETAH, (256, 256), 256, 1_000_000, 1_000, critics=10, frames=1_500, peer_frames=500
    ),
    # the settings of CleanRL's dqn_atari.py with a smaller memory; a frame is a step of four
    "dqn-pong": OffPolicy(PONG.env_id, (), 32, 20_000, 1_000, 4, critic_lr=1e-4, frames=2_000, peer_frames=2_000),
}
# the epsilon of DQN falls over half of CleanRL's 500,000 frames
EPSILON_FRAMES = 250_000


def off_policy_parser(description: str | None) -> argparse.ArgumentParser:
    """Make the parser with the flags of all off-policy scripts."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=list(WORKLOADS), required=True)
    add_run_flags(parser)
    parser.set_defaults(threads=None)
    parser.add_argument("--frames", type=int, help="frames that are timed (default: by workload)")
    parser.add_argument("--compile", action="store_true", help="compile the update, where the script can")
    return parser


def start(args: argparse.Namespace) -> OffPolicy:
    """Fix threads and seeds for the workload of the flags, and return it."""
    work = WORKLOADS[args.workload]
    args.threads = args.threads or work.threads
    prepare(args)
    return work


class Stopwatch:
    """Counts frames from `begin` on."""

    def __init__(self, workload: OffPolicy) -> None:
        self._begin = workload.begin
        self._from: tuple[int, float] | None = None
        self._to: tuple[int, float] = (0, 0.0)

    def at(self, frame: int) -> None:
        """Note that so many frames were collected, and the updates that belong to them made."""
        if frame >= self._begin:
            self._to = (frame, clock())
            self._from = self._from or self._to

    def report(self, peer: str, args: argparse.Namespace) -> None:
        """Print the JSON line."""
        if self._from is None or self._to[0] <= self._from[0]:
            raise SystemExit(f"{peer}: no frame after frame {self._begin} was timed")
        frames, seconds = self._to[0] - self._from[0], self._to[1] - self._from[1]
        emit(
            peer=f"{peer}, compiled" if args.compile else peer,
            workload=args.workload,
            threads=args.threads,
            seed=args.seed,
            frames=frames,
            frames_per_s=frames / seconds,
        )
