"""The hook that writes `progress.csv` with the columns of rlpyt, one row at each log point."""

from __future__ import annotations

import csv
import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import torch
from pydantic import BaseModel, Field

from rlcore import Context, Episode, EvaluationResult, hookimpl
from rlcore.types import MASK, Progress
from rlcore_plugin_runners.samples import figures_of
from rlcore_plugin_runners.trajectories import TrajInfo, evaluated, logged

log = logging.getLogger(__name__)
FILE: Final = "progress.csv"
_STATISTICS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "Average": np.mean,
    "Std": np.std,
    "Median": np.median,
    "Min": np.min,
    "Max": np.max,
}


class Follower(Protocol):
    """Stores what an iteration gave, and has rows written, in the place of the hook."""

    def after_steps(self, traj_infos: list[TrajInfo], steps: Sequence[Mapping[str, torch.Tensor]], batch: Any) -> None:
        """Store the episodes and optimisation steps of an iteration."""

    def after_iteration(self) -> None:
        """Have a row written where one is due."""


class Diagnostics:
    """Writes the clocks, trajectory infos and optimisation infos of a run as rlpyt's runners do.

    A row has `Diagnostics/Iteration` and other clocks; each figure of the episodes and of the optimisation steps since
    the last row as `NAMEAverage`, `Std`, `Median`, `Min` and `Max`. The episodes are the last `traj_window` of
    training, or with 0 those of the evaluation at this point.

    Of several ranks it is on the first alone: the clocks are those of the whole run, episodes and losses its own.

    Attributes:
        observer: True; training does not depend on it.
        ranks: the first alone.
        traj_info_cls: what is kept of each episode.
        traj_info_kwargs: its attributes that begin with `_`.
        env_spec: of the vector env.
        joined: what decides what is stored and when a row is written; None for this hook itself.
    """

    observer: Final = True
    ranks: Final = "first"

    class Config(BaseModel, extra="forbid"):
        """When a row is written, and of which episodes."""

        log_interval_itrs: int = Field(1, ge=1, description="iterations between two rows")
        traj_window: int = Field(100, ge=0, description="episodes of training that a row is about; 0: those evaluated")
        batch_size: int = Field(1, ge=1, description="samples of an optimisation step, for the replay ratio")
        discount: float = Field(0.99, ge=0, le=1, description="of the discounted return of episodes")

    def __init__(self, config: Config, context: Context) -> None:
        self._config, self._device = config, context.device
        self._path = None if context.run.folder is None else Path(context.run.folder) / FILE
        self.traj_info_cls: type[TrajInfo] = TrajInfo
        self.traj_info_kwargs: Mapping[str, Any] = {"discount": config.discount}
        self._running: dict[int, TrajInfo] = {}  # by env
        self._ended: defaultdict[int, deque[Episode]] = defaultdict(deque)  # in this batch, by env
        self._infos: deque[dict[str, float]] = deque(maxlen=config.traj_window)
        self._evaluated: list[TrajInfo] | None = None
        self._steps_of_optimizer: list[Mapping[str, torch.Tensor]] = []  # since the last row
        self._completed: list[TrajInfo] = []  # in this iteration
        self._latest: list[Mapping[str, torch.Tensor]] = []  # steps of the optimizer in this iteration
        self._further: dict[str, Any] = {}  # figures of the next row that others have recorded
        self.joined: Follower | None = None
        self._counts = {"new": 0, "seconds": 0.0, "eval_seconds": 0.0, "frames": 0, "updates": 0, "train_seconds": 0.0}
        self.env_spec = context.env.spec
        self._frame_skip = self.env_spec.frame_skip
        self._began = time.monotonic()
        self._mark = self._began  # where an evaluation may begin

    @hookimpl
    def setup(self, trainer: Any) -> None:
        """Keep of an earlier file what a resumed run has done."""
        self._began = self._mark = time.monotonic()
        if self._path is not None and self._path.exists():
            steps = trainer.progress.frames // self._frame_skip
            _write(self._path, [row for row in read(self._path) if float(row["Diagnostics/CumSteps"]) <= steps])

    @hookimpl
    def episode_end(self, episode: Episode) -> None:
        """Keep the episodes of the batch, until their steps are looked at."""
        self._ended[episode.env_index].append(episode)

    @hookimpl
    def pre_steps_log(self, batch: Any) -> None:
        """Let the trajectory infos take in every step of a batch."""
        entries = [batch["observation"], batch["action"], batch["next", "reward"], batch["next", "done"]]
        observation, action, reward, done = (entry.cpu().numpy() for entry in entries)
        mask = batch.get(MASK, None)
        counted = np.ones(done.shape[:2], dtype=bool) if mask is None else mask.cpu().numpy()[..., 0]
        for step in range(done.shape[1]):
            for env in np.flatnonzero(counted[:, step]).tolist():
                end = bool(done[env, step, 0])
                self._step(env, observation[env, step], action[env, step], float(reward[env, step, 0]), end)
        self._ended.clear()

    def _step(self, env: int, observation: Any, action: Any, reward: float, end: bool) -> None:
        info = self._running.get(env)
        if info is None:
            info = self._running[env] = self._new()
        env_info = None
        if end:
            episode = self._ended[env].popleft()
            env_info = {**episode.infos, "episode_return": episode.return_}
        info.step(observation, action, reward, end, None, env_info)
        if end:
            info = self._running.pop(env).terminate(observation)
            if info.Length == episode.length:  # else its beginning was not seen, and its figures are not those of all
                self._completed.append(info)
            self._counts["new"] += 1

    def forget_episodes(self) -> None:
        """Forget the trajectory infos under way: the collector begins new episodes."""
        self._running.clear()

    def _new(self) -> TrajInfo:
        info = self.traj_info_cls()
        for name, value in self.traj_info_kwargs.items():
            setattr(info, f"_{name}", value)
        return info

    @hookimpl
    def post_optim_log(self, metrics: Mapping[str, torch.Tensor]) -> None:
        """Keep what an optimisation step returns, on its device."""
        self._latest.append({name: value for name, value in metrics.items() if value.ndim == 0})

    @hookimpl
    def post_steps(self, batch: Any) -> None:
        """Store what the iteration gave, and note when an evaluation may begin."""
        completed, self._completed = self._completed, []
        steps, self._latest = self._latest, []
        if self.joined is None:
            self.store(completed, steps)
        else:
            self.joined.after_steps(completed, steps, batch)
        self._mark = time.monotonic()

    def latest_steps(self) -> list[Mapping[str, torch.Tensor]]:
        """Return what the optimisation steps of this iteration returned so far."""
        return list(self._latest)

    def store(self, traj_infos: Iterable[TrajInfo], steps: Iterable[Mapping[str, torch.Tensor]]) -> None:
        """Keep episodes and optimisation steps for the next row."""
        self._infos.extend(logged(info) for info in traj_infos)
        self._steps_of_optimizer.extend(steps)

    def record(self, figures: Mapping[str, Any]) -> None:
        """Write further figures into the next row."""
        self._further |= figures

    @hookimpl
    def evaluation(self, result: EvaluationResult, trainer: Any) -> None:
        """Keep its episodes; before the first frame they are a row."""
        self._evaluated = evaluated(result.lengths, result.returns)
        self._counts["eval_seconds"] += time.monotonic() - self._mark
        self._mark = time.monotonic()
        if self.joined is None and trainer.progress.frames == 0 and not self._config.traj_window:
            self.write_row(trainer.progress)

    def latest_evaluation(self) -> list[TrajInfo]:
        """Return the episodes of the latest evaluation."""
        return [] if self._evaluated is None else list(self._evaluated)

    @hookimpl
    def post_steps_log(self, trainer: Any) -> None:
        """Write a row where one is due."""
        if self.joined is not None:
            self.joined.after_iteration()
        elif trainer.progress.iterations % self._config.log_interval_itrs == 0:
            self.write_row(trainer.progress)

    def write_row(
        self, progress: Progress, evaluation: Sequence[TrajInfo] | None = None, prefix: str = "Diagnostics/"
    ) -> None:
        """Write a row.

        Args:
            progress: the clocks.
            evaluation: the episodes that it is about, where it is about those evaluated; default: the latest ones.
            prefix: of the clocks' columns.
        """
        if evaluation is not None:
            self._evaluated = list(evaluation)
        row = {f"{prefix}{name}": value for name, value in self._clocks(progress).items()}
        for name, values in {**self._of_episodes(), **self._of_optimizer()}.items():
            row |= statistics_of(name, values)
        row |= self._further
        self._further = {}
        self._steps_of_optimizer.clear()
        self._counts["new"] = 0
        shown = row.get("ReturnAverage")
        log.info("itr #%d: %d steps, return %s", row[f"{prefix}Iteration"], row[f"{prefix}CumSteps"], shown)
        if self._path is not None:
            _write(self._path, [*read(self._path), row])

    def _clocks(self, progress: Any) -> dict[str, float]:
        counts = self._counts
        seconds = counts["seconds"] + time.monotonic() - self._began
        train_seconds = seconds - counts["eval_seconds"]
        frames, updates = progress.frames - counts["frames"], progress.updates - counts["updates"]
        steps, elapsed = frames // self._frame_skip, max(train_seconds - counts["train_seconds"], 1e-9)
        total = progress.frames // self._frame_skip
        found = {
            "Iteration": max(progress.iterations - 1, 0),
            "CumTime (s)": seconds,
            "CumSteps": total,
            "CumCompletedTrajs": progress.episodes,
            "CumUpdates": progress.updates,
            "StepsPerSecond": steps / elapsed,
            "UpdatesPerSecond": updates / elapsed,
            "ReplayRatio": updates * self._config.batch_size / steps if steps else 0.0,
            "CumReplayRatio": progress.updates * self._config.batch_size / total if total else 0.0,
        }
        counts |= {"frames": progress.frames, "updates": progress.updates, "train_seconds": train_seconds}
        if self._config.traj_window:
            window = sum(info["Length"] for info in self._infos)
            return {**found, "NewCompletedTrajs": counts["new"], "StepsInTrajWindow": window}
        lengths = [info.Length for info in self.latest_evaluation() if "Length" in info]
        evaluated = {"StepsInEval": sum(lengths), "TrajsInEval": len(lengths), "CumEvalTime": counts["eval_seconds"]}
        return {"CumTrainTime": train_seconds, **found, **evaluated}

    def _of_episodes(self) -> dict[str, list[float]]:
        infos = list(self._infos) if self._config.traj_window else [logged(info) for info in self._evaluated or ()]
        return {name: [info[name] for info in infos] for name in (infos[0] if infos else ())}

    def _of_optimizer(self) -> dict[str, Any]:
        figures = figures_of(self._steps_of_optimizer)
        return {name: torch.stack(values).cpu().numpy() for name, values in figures.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the episodes of the window and those under way, what the next row is about, and the clocks."""
        steps = [{name: float(value) for name, value in metrics.items()} for metrics in self._steps_of_optimizer]
        return {
            "steps": steps,
            "infos": list(self._infos),
            "running": {str(env): dict(vars(info)) for env, info in self._running.items()},
            "counts": {**self._counts, "seconds": self._counts["seconds"] + time.monotonic() - self._began},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set them."""
        self._infos.clear()
        self._infos.extend(state["infos"])
        self._running = {}
        for env, values in state["running"].items():
            info = self._running[int(env)] = self._new()
            vars(info).update(values)
        self._steps_of_optimizer = [
            {name: torch.tensor(value, device=self._device) for name, value in metrics.items()}
            for metrics in state["steps"]
        ]
        self._counts = dict(state["counts"])
        self._began = time.monotonic()


def statistics_of(name: str, values: Any) -> dict[str, float]:
    """Return the five columns of a figure."""
    return {name + statistic: float(compute(values)) for statistic, compute in _STATISTICS.items()}


def read(path: str | Path) -> list[dict[str, Any]]:
    """Return the rows of a `progress.csv`, each by column; none where there is no file."""
    if not Path(path).exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write all rows at once; columns that a row lacks are nan."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    unfinished = path.with_suffix(".tmp")
    with open(unfinished, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="nan")
        writer.writeheader()
        writer.writerows(rows)
    unfinished.replace(path)
