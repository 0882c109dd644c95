"""`rlcore evaluate`: the deterministic policy of a trained run, on fixed seeds."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlcore.checkpoints import best, scan
from rlcore.cli import Answer, add_json, positive
from rlcore.run_folder import CHECKPOINTS
from rlcore.types import EvaluationResult
from rlcore_plugin_agents.commands.arguments import add_agent_arguments

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Evaluation:
    """Episodes of the deterministic policy of a run.

    Attributes:
        run: its folder.
        at: what played, such as a checkpoint by its frame, or an exported file.
        frames: for which the policy was trained, or its updates.
        mean_return: over the episodes.
        seeds: of the reset, by episode.
        returns: undiscounted, by episode.
        lengths: steps, by episode.
        policies: which policy acted, by episode; empty where a run has one.
        video: the file of the first episode; null without `--video`.
    """

    run: str
    at: str
    frames: int
    mean_return: float
    seeds: list[int]
    returns: list[float]
    lengths: list[int]
    policies: list[str]
    video: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore evaluate`."""
    parser.description = "Evaluate a trained run."
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument("--episodes", type=positive, metavar="N", help="default: as in the config of the run")
    parser.add_argument("--seed", type=int, metavar="S", help="reset seed of the first episode")
    add_agent_arguments(parser)
    parser.add_argument("--device", metavar="D", help="auto, cpu, cuda, cuda:N or mps; default: as in the config")
    parser.add_argument("--video", metavar="FILE", help="write the first episode as an mp4 file")
    add_json(parser, Evaluation)


def run(options: argparse.Namespace) -> Answer:
    """Evaluate, and answer the episodes."""
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
    evaluation = Evaluation(
        str(folder),
        stage.at,
        stage.frames,
        result.mean_return,
        [*result.seeds],
        [*result.returns],
        [*result.lengths],
        [*result.policies],
        options.video,
    )
    return Answer(evaluation, "".join(f"{line}\n" for line in _lines(folder.name, evaluation, result)))


def _lines(name: str, evaluation: Evaluation, result: EvaluationResult) -> Iterator[str]:
    count = len(result.returns)
    yield f"{name} at {evaluation.at}: mean return {result.mean_return:,.1f} over {count} episodes"
    for policy, returns in result.returns_by_policy().items():
        yield f"  policy {policy}: mean return {sum(returns) / len(returns):,.1f} over {len(returns)} episodes"
    for seed, value, length in zip(result.seeds, result.returns, result.lengths, strict=True):
        yield f"  seed {seed:>6}  return {value:>10,.1f}  length {length:>6,}"
    if evaluation.video is not None:
        yield f"{evaluation.video}: the episode of seed {result.seeds[0]}"


def _was_evaluated(folder: Path) -> bool:
    """Return whether there is a best checkpoint; say that there is none."""
    entries = scan(folder / CHECKPOINTS).entries
    if entries and best(entries) is None:
        log.warning("no checkpoint of %s was evaluated, so none is the best; the latest is taken", folder)
        return False
    return True
