"""`rlcore evaluate`: the deterministic policy of a trained run, on fixed seeds."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path

from rlcore.checkpoints import best, scan
from rlcore.cli import positive
from rlcore.run_folder import CHECKPOINTS
from rlcore_plugin_agents.commands.arguments import add_agent_arguments

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore evaluate`."""
    parser.description = "Evaluate a trained run."
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument("--episodes", type=positive, metavar="N", help="default: as in the config of the run")
    parser.add_argument("--seed", type=int, metavar="S", help="reset seed of the first episode")
    add_agent_arguments(parser)
    parser.add_argument("--device", metavar="D", help="auto, cpu, cuda, cuda:N or mps; default: as in the config")
    parser.add_argument("--video", metavar="FILE", help="write the first episode as an mp4 file")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Evaluate and print the episodes."""
    from rlcore_plugin_agents.filming import check_video, film
    from rlcore_plugin_agents.stage import set_stage

    folder = Path(options.run)
    video = None if options.video is None else Path(options.video)
    if video is not None:
        check_video(video)
    given = {"episodes": options.episodes, "seed": options.seed}
    stage = set_stage(
        folder,
        best=options.best and _was_evaluated(folder),
        changes=options.set,
        evaluation={key: value for key, value in given.items() if value is not None},
        device=options.device,
        agent=None if options.agent is None else Path(options.agent),
        trust=options.trust,
    )
    try:
        result = stage.evaluator.evaluate()
    finally:
        stage.evaluator.close()
    if video is not None:
        list(film(stage, range(result.seeds[0], result.seeds[0] + 1), video))
    if options.json:
        counts = {"frames": stage.frames, "seeds": result.seeds, "returns": result.returns, "lengths": result.lengths}
        print(json.dumps(counts | ({"policies": result.policies} if result.policies else {})))
        return 0
    count = len(result.returns)
    print(f"{folder.name} at {stage.at}: mean return {result.mean_return:,.1f} over {count} episodes")
    for policy, returns in result.returns_by_policy().items():
        print(f"  policy {policy}: mean return {sum(returns) / len(returns):,.1f} over {len(returns)} episodes")
    for seed, value, length in zip(result.seeds, result.returns, result.lengths, strict=True):
        print(f"  seed {seed:>6}  return {value:>10,.1f}  length {length:>6,}")
    if video is not None:
        print(f"{video}: the episode of seed {result.seeds[0]}")
    return 0


def _was_evaluated(folder: Path) -> bool:
    """Return whether there is a best checkpoint; say that there is none."""
    entries = scan(folder / CHECKPOINTS).entries
    if entries and best(entries) is None:
        log.warning("no checkpoint of %s was evaluated, so none is the best; the latest is taken", folder)
        return False
    return True
