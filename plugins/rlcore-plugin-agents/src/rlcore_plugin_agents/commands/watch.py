"""`rlcore watch`: the policy of a trained run, in a window or as a video."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from rlcore.cli import Answer, add_json, positive
from rlcore.errors import ConfigError
from rlcore_plugin_agents.commands.arguments import add_agent_arguments


@dataclass(frozen=True)
class Watched:
    """What was shown, in a window or as a video.

    Attributes:
        run: its folder.
        seeds: of the reset, by episode.
        returns: undiscounted, by episode.
        lengths: steps, by episode.
        video: the file; null for a window.
    """

    run: str
    seeds: list[int]
    returns: list[float]
    lengths: list[int]
    video: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore watch`."""
    parser.description = "Show the policy of a trained run, in a window or as a video."
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument("--episodes", type=positive, default=1, metavar="N", help="default: 1")
    parser.add_argument("--seed", type=int, default=10_000, metavar="S", help="of the first episode; default: 10000")
    add_agent_arguments(parser)
    parser.add_argument("--video", metavar="FILE", help="write an mp4 file and open no window")
    parser.add_argument(
        "--imagined",
        type=positive,
        nargs="?",
        const=45,
        metavar="STEPS",
        help="in the video, what a world model sees for 5 steps and imagines for so many, beside what was real; 45",
    )
    add_json(parser, Watched)


def run(options: argparse.Namespace) -> Answer:
    """Play, and print the return of each episode."""
    from rlcore_plugin_agents.filming import check_video, film, show
    from rlcore_plugin_agents.imagining import film_imagined
    from rlcore_plugin_agents.stage import set_stage

    video = None if options.video is None else Path(options.video)
    if video is not None:
        check_video(video)
    elif options.imagined is not None:
        raise ConfigError("--imagined makes a video: say where it goes with --video FILE")
    if options.imagined is not None and options.agent is not None:
        raise ConfigError("--imagined asks the world model of the checkpoint, and --agent plays a file: leave one out")
    stage = set_stage(
        Path(options.run),
        best=options.best,
        changes=options.set,
        agent=None if options.agent is None else Path(options.agent),
        trust=options.trust,
    )
    seeds = range(options.seed, options.seed + options.episodes)
    if video is None:
        episodes = show(stage, seeds)
    elif options.imagined is None:
        episodes = film(stage, seeds, video)
    else:
        episodes = film_imagined(stage, seeds, video, options.imagined)
    watched = Watched(options.run, [], [], [], options.video)
    for seed, value, length in episodes:
        watched.seeds.append(seed)
        watched.returns.append(value)
        watched.lengths.append(length)
        print(f"seed {seed:>6}  return {value:>10,.1f}  length {length:>6,}", flush=True)
    if video is not None:
        print(video)
    return Answer(watched)
