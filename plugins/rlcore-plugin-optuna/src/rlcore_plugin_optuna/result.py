"""What a study found: a table of its trials, how much each key matters, and the config of the best trial."""

from __future__ import annotations

import logging
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, Final

import optuna
import tomli_w
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState

from rlcore.errors import ConfigError
from rlcore.files import replacing
from rlcore.run_folder import read_config
from rlcore_plugin_optuna.command import BestTrial, Swept
from rlcore_plugin_optuna.run_process import folder_of
from rlcore_plugin_optuna.study_file import StudyFile

log = logging.getLogger(__name__)

BEST: Final = "best.toml"
# rows of the table, and trials below which nothing can be said of how much a key matters
_ROWS: Final = 10
_FEWEST: Final = 8


def report(file: StudyFile, study: optuna.Study) -> Swept:
    """Print and return what was found, and write the config of the best trial."""
    best_trial = None
    trials = study.get_trials(deepcopy=False)
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    lines = [_counts(trials)]
    if complete:
        ordered = sorted(complete, key=_value, reverse=file.study.direction == "maximize")
        lines += ["", *_table(ordered[:_ROWS]), "", *_importances(study, complete)]
        best = write_best(file, ordered[0])
        lines += [f"best: trial {ordered[0].number}, {shown(_value(ordered[0]))}; its config: {best}"]
        best_trial = BestTrial(ordered[0].number, _value(ordered[0]), ordered[0].params, str(best))
    sys.stdout.write("\n".join(lines) + "\n")
    return Swept(str(file.place), dict(Counter(trial.state.name.lower() for trial in trials)), best_trial)


def write_best(file: StudyFile, trial: FrozenTrial) -> Path:
    """Write the config of a trial as one that `rlcore train` takes, without what belongs to the study."""
    config = read_config(folder_of(file, trial.number, 0))
    if "run" not in config:
        raise ConfigError(
            f"the best trial is {trial.number}, and its run folder {str(folder_of(file, trial.number, 0))!r} is gone, "
            f"so that {BEST} cannot be written"
        )
    config.pop("versions", None)
    config["hook"] = [hook for hook in config.get("hook", []) if hook.get("use") != "optuna:sweep-trial"]
    config["run"] |= {"name": f"{file.study.name}-best", "folder": "runs"}
    comment = f"# Trial {trial.number} of the study {file.study.name}: {shown(_value(trial))}\n\n"
    with replacing(file.place / BEST) as place:
        place.write_text(comment + tomli_w.dumps(config), encoding="utf-8")
    return file.place / BEST


def shown(value: Any) -> str:
    """Return a value of a trial as people read it."""
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1000 else str(value)


def _value(trial: FrozenTrial) -> float:
    assert trial.value is not None, "it is complete"
    return trial.value


def _counts(trials: list[FrozenTrial]) -> str:
    """Return how many trials ended in which way."""
    counts = Counter(trial.state.name.lower() for trial in trials)
    words = {"complete": "complete", "pruned": "pruned", "fail": "failed", "running": "to be resumed"}
    return f"{len(trials)} trials: " + ", ".join(
        f"{counts[name]} {word}" for name, word in words.items() if counts[name]
    )


def _table(trials: list[FrozenTrial]) -> list[str]:
    keys = list(trials[0].params)
    rows = [["trial", "value", *keys]]
    rows += [[str(t.number), shown(_value(t)), *(shown(t.params.get(key)) for key in keys)] for t in trials]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _importances(study: optuna.Study, complete: list[FrozenTrial]) -> list[str]:
    """Return how much each key matters for the value, after PED-ANOVA; nothing where trials are too few."""
    if len(complete) < _FEWEST or len(complete[0].params) < 2 or len(set(map(_value, complete))) < 2:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    return ["what matters: " + ", ".join(f"{key} {fraction:.0%}" for key, fraction in found.items()), ""]
