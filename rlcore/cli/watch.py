"""`rlcore watch`: the policy of a trained run, in a window or as a video."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlcore.agents.filming import check_video, film, show
from rlcore.agents.stage import set_stage


def run(options: argparse.Namespace) -> int:
    """Play, and print the return of each episode."""
    video = None if options.video is None else Path(options.video)
    if video is not None:
        check_video(video)
    stage = set_stage(
        Path(options.run),
        best=options.best,
        changes=options.set,
        agent=None if options.agent is None else Path(options.agent),
        trust=options.trust,
    )
    seeds = range(options.seed, options.seed + options.episodes)
    for seed, value, length in show(stage, seeds) if video is None else film(stage, seeds, video):
        print(f"seed {seed:>6}  return {value:>10,.1f}  length {length:>6,}", flush=True)
    if video is not None:
        print(video)
    return 0
