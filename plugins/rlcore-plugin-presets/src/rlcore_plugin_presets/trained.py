"""What a training gives back: where its run is, what it reached, its curves, and its agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import rlcore
from rlcore.errors import MissingPluginError, did_you_mean
from rlcore.plugins import lend
from rlcore.run import Run
from rlcore.types import EvaluationResult

if TYPE_CHECKING:
    from rlcore import Agent
    from rlcore.types import Array


@dataclass(frozen=True)
class Curve:
    """A metric over the run.

    Attributes:
        frames: `[point]`, int64, when it was written.
        values: `[point]`, float64.
    """

    frames: Array
    values: Array

    def __len__(self) -> int:
        return len(self.frames)


class Curves(Mapping[str, Curve]):
    """The metrics of a run by name, such as `"episode/return"`.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        read_metrics = lend("rlcore_plugin_presets", "read_metrics", "the reading of curves")
        self._curves = {
            name: Curve(np.fromiter(curve, np.int64, len(curve)), np.fromiter(curve.values(), np.float64, len(curve)))
            for name, curve in read_metrics(folder).items()
        }

    @property
    def evaluations(self) -> Curve:
        """Mean return of each evaluation."""
        return self["evaluation/return"]

    @property
    def episodes(self) -> Curve:
        """Mean return of the training episodes that ended since the row before."""
        return self["episode/return"]

    def __getitem__(self, name: str) -> Curve:
        """Return a metric.

        Raises:
            KeyError: there is none of that name; names the nearest.
        """
        if name not in self._curves:
            raise KeyError(f"no metric {name!r}{did_you_mean(name, self._curves)}")
        return self._curves[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._curves)

    def __len__(self) -> int:
        return len(self._curves)

    def __repr__(self) -> str:
        return f"Curves({', '.join(name for name in self if name.count('/') == 1)})"  # without std, min, max and count


@dataclass(frozen=True, repr=False)
class TrainedRun:
    """A run that has ended.

    Attributes:
        folder: with config, curves and checkpoints; `rlcore report FOLDER` makes a page of it.
        frames: environment frames of training; 0 of a run that learns from a dataset alone.
        updates: optimisation steps.
        length: frames, or updates where those are what its config counts.
        last_evaluation: the latest; None without an evaluator.
        best_evaluation: the one with the highest mean return.
        stop_reason: why it ended before its end; None where it did not.
    """

    folder: Path
    frames: int
    updates: int
    length: int
    last_evaluation: EvaluationResult | None
    best_evaluation: EvaluationResult | None
    stop_reason: str | None = None

    def __repr__(self) -> str:
        parts = [f"{str(self.folder)!r}", f"{self.frames:,} frames", f"{self.updates:,} updates"]
        for name, result in (("last", self.last_evaluation), ("best", self.best_evaluation)):
            parts += [] if result is None else [f"{name} evaluation {result.mean_return:,.1f}"]
        return f"TrainedRun({', '.join(parts + ([f'stopped: {self.stop_reason}'] if self.stop_reason else []))})"

    def _repr_html_(self) -> str | None:
        """Return the picture that a notebook shows; None without its plugin, for the text instead."""
        try:
            return str(lend("rlcore_plugin_presets", "run_html")(self))
        except MissingPluginError:
            return None

    @classmethod
    def of(cls, run: Run) -> TrainedRun:
        """Return what a run reached."""
        assert run.folder is not None
        trainer, progress = run.trainer, run.trainer.progress
        return cls(
            run.folder,
            progress.frames,
            progress.updates,
            progress.now,
            trainer.last_evaluation,
            trainer.best_evaluation,
            trainer.stop_reason,
        )

    @cached_property
    def agent(self) -> Agent:
        """The policy at the end of the training, which acts on raw observations."""
        return rlcore.load_agent(self.folder)

    @cached_property
    def best_agent(self) -> Agent:
        """The policy with the best evaluation."""
        return rlcore.load_agent(self.folder, best=True)

    @cached_property
    def curves(self) -> Curves:
        """The metrics over the run."""
        return Curves(self.folder)
