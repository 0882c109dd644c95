"""Speed of CleanRL's `ppo_atari.py` on Pong, run as it is and timed from outside; see `cleanrl_ppo.py`."""

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from unittest import mock

import ale_py
import gymnasium
import torch.utils.tensorboard
from cleanrl_ppo import NoWriter, SeedableStatistics, StepTimer, old_gym, run_script, script_flags
from common import prepare, report, whole_batches
from gymnasium.wrappers import FrameStackObservation, GrayscaleObservation, ResizeObservation
from pong import PONG, pong_parser


class Seedable(FrameStackObservation):
    """Stacked frames with the method `seed` that environments had before Gymnasium."""

    seed = SeedableStatistics.seed


def old_atari_gym(timer: StepTimer) -> ModuleType:
    """Make a module `gym` with what `ppo_atari.py` uses of it."""
    module = old_gym(timer)
    module.wrappers = SimpleNamespace(
        RecordEpisodeStatistics=gymnasium.wrappers.RecordEpisodeStatistics,
        ResizeObservation=ResizeObservation,
        GrayScaleObservation=GrayscaleObservation,
        FrameStack=Seedable,
    )
    return module


@contextlib.contextmanager
def stand_ins(timer: StepTimer) -> Iterator[None]:
    """Put the stand-ins in place for the time of the block."""
    with (
        mock.patch.object(torch.utils.tensorboard, "SummaryWriter", NoWriter),
        mock.patch.dict(sys.modules, gym=old_atari_gym(timer)),
    ):
        yield


def main() -> None:
    args = pong_parser(__doc__).parse_args()
    frames = whole_batches(PONG, args.frames)
    prepare(args)
    gymnasium.register_envs(ale_py)
    timer = StepTimer(PONG)
    run_script("cleanrl.ppo_atari", script_flags(PONG, frames, args.seed), stand_ins(timer))
    report("cleanrl", args, timer.phases, timer.returns)


if __name__ == "__main__":
    main()
