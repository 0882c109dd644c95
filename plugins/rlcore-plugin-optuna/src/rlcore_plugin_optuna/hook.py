"""The hook in the runs of a study: it reports evaluations to Optuna, and stops a run that is pruned."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, Field

from rlcore import hookimpl
from rlcore.types import Context

if TYPE_CHECKING:
    import optuna

    from rlcore.types import EvaluationResult, Trainer
    from rlcore_plugin_optuna.study_file import StudyFile

log = logging.getLogger(__name__)

PRUNED: Final = "pruned"


def attribute_of(run: int) -> str:
    """Return the name under which a trial keeps the value of one of its runs."""
    return f"run {run}"


class SweepTrial:
    """Reports each evaluation to the study of the run, and asks for a stop when the trial is pruned.

    Training does not notice. In a run that lies in no folder of a study it does nothing.
    """

    observer: Final = True
    ranks: Final = "first"

    class Config(BaseModel, extra="forbid"):
        """Which trial of the study the run belongs to."""

        trial: int = Field(ge=0, description="number of the trial")
        run: int = Field(0, ge=0, description="which of the runs of the trial it is")

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._folder = context.run.folder
        self._study: optuna.Study | None = None
        self._trial: optuna.Trial | None = None
        self._file: StudyFile | None = None

    @hookimpl
    def setup(self) -> None:
        """Open the study."""
        from rlcore_plugin_optuna.study_folder import file_of, opened
        from rlcore_plugin_optuna.trials import is_told, trial_of

        folder = None if self._folder is None else self._folder.parent.parent
        self._file = None if folder is None else file_of(folder)
        if folder is None or self._file is None:
            log.warning("sweep-trial: the run lies in no folder of a study; nothing is reported")
            return
        self._study = opened(folder, self._file)
        if is_told(self._study, self._config.trial):
            log.warning("sweep-trial: trial %d is over; nothing is reported", self._config.trial)
            return
        self._trial = trial_of(self._study, self._config.trial)

    @hookimpl
    def evaluation(self, result: EvaluationResult, trainer: Trainer) -> None:
        """Report it, unless nothing was trained yet, or a run that was killed reported the same evaluation already."""
        if self._trial is None or self._study is None or self._file is None or not trainer.progress.updates:
            return
        best = trainer.best_evaluation
        value = best.mean_return if best is not None and self._file.study.metric == "best" else result.mean_return
        self._trial.set_user_attr(attribute_of(self._config.run), value)
        step = self._config.run * trainer.progress.total + result.frames
        if step not in self._study.get_trials(deepcopy=False)[self._config.trial].intermediate_values:
            self._trial.report(self._mean_with(value), step)
        if result.frames < trainer.progress.total and self._trial.should_prune():
            self._trial.set_user_attr(PRUNED, step)
            trainer.request_stop(f"trial {self._config.trial} is pruned")

    def _mean_with(self, value: float) -> float:
        """Return the mean over the runs of the trial so far, this one included."""
        attributes: dict[str, Any] = {} if self._trial is None else self._trial.user_attrs
        before = [attributes[attribute_of(run)] for run in range(self._config.run)]
        return sum([*before, value]) / (len(before) + 1)
