"""What the page of one run says: curves, evaluations, checkpoints, health, config, media and output."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import tomli_w
from rlcore_plugin_reports import (
    LARGE,
    MEDIA_TYPES,
    METRIC,
    SMALL,
    STATISTICS,
    RunFiles,
    checkpoint_rows,
    findings,
    media_files,
    panels,
)

from rlcore.errors import StorageError
from rlcore.files import plain_file
from rlcore.run_folder import CHECKPOINTS, CONFIG_FILE
from rlcore_plugin_console.catalogue import Catalogue
from rlcore_plugin_console.evaluations import Evaluations
from rlcore_plugin_console.jobs import OUTPUT
from rlcore_plugin_console.metrics import MetricsOfRuns, drawn

# on which the findings depend, with the status
_JUDGED: Final = (CHECKPOINTS, "health.json", "stacks.txt", "faults")
# what is another when what is said of a run is
_READ: Final = (CONFIG_FILE, "metrics.csv", "evaluations.csv", "videos", "images", *_JUDGED)
_LOG_BYTES: Final = 64_000
_MOST_EVALUATIONS: Final = 200
# that a page may ask for at once
_MOST_CURVES: Final = 60


class Details:
    """The pages of single runs.

    Args:
        catalogue: which has the runs.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._metrics = MetricsOfRuns()
        self._findings: dict[str, tuple[Any, list[str]]] = {}

    def about(self, name: str, known: str) -> dict[str, Any] | None:
        """Return all but the curves; None where the reader knows it.

        Args:
            name: of the run.
            known: version of what the reader got last.

        Raises:
            UnknownRunError: there is no such run.
        """
        run = RunFiles(self._catalogue.folder_of(name))
        times = [_time(file) for file in (*(run.folder / each for each in _READ), *_outputs(run.folder))]
        version = hashlib.blake2b(repr((times, run.status)).encode("utf-8", "replace"), digest_size=8).hexdigest()
        if known == version:
            return None
        return {
            "version": version,
            "evaluations": _evaluations(self._catalogue.evaluations_of(name)),
            "checkpoints": checkpoint_rows([run]),
            "health": self._health(name, run),
            "config": tomli_w.dumps({key: value for key, value in run.config.items() if key != "versions"}),
            "versions": {key: str(value) for key, value in run.section("versions").items()},
            "media": [
                {"file": file, "video": kind.startswith("video")} for file, (_, kind) in self.media(name).items()
            ],
            "output": output(run.folder),
        }

    def _health(self, name: str, run: RunFiles) -> list[str]:
        """Return the findings of a run, which compare whole tables with their checksums: once for each checkpoint."""
        signs = [run.status, *(_time(run.folder / file) for file in _JUDGED)]
        if self._findings.get(name, (None, []))[0] != signs:
            try:
                self._findings[name] = (signs, list(findings(run)))
            except StorageError as error:
                self._findings[name] = (signs, [str(error)])
        return self._findings[name][1]

    def media(self, name: str) -> dict[str, tuple[Path, str]]:
        """Return path and type of the latest images and videos of a run, by their names in its folder."""
        folder = self._catalogue.folder_of(name)
        return {file.relative_to(folder).as_posix(): (file, MEDIA_TYPES[file.suffix]) for file in media_files(folder)}

    def curves(self, name: str, keys: Sequence[str], known: str) -> dict[str, Any] | None:
        """Return the curves of a run as the charts of reports take them; None where the reader knows them.

        Args:
            name: of the run.
            keys: of metrics beside the main ones.
            known: version of what the reader got last.

        Raises:
            UnknownRunError: there is no such run.
        """
        folder = self._catalogue.folder_of(name)
        evaluations = self._catalogue.evaluations_of(name).curves()
        metrics = self._metrics.of(folder)
        with metrics.lock:
            version = f"{metrics.beginnings}.{metrics.size}.{sum(map(len, evaluations.values()))}.{len(keys)}"
            if known == version:
                return None
            recorded = dict.fromkeys([*metrics.names, *evaluations])
            titles = dict(sorted(panels(list(recorded)), key=lambda panel: panel[0] != METRIC))
            main = [key for key in titles if key in recorded] or list(recorded)[:1]
            lines = {}
            for key in dict.fromkeys([*main, *(key for key in keys[:_MOST_CURVES] if key in recorded)]):
                most = LARGE if key == main[0] else SMALL
                if key in metrics.names:
                    line = metrics.drawn(key, most)
                else:
                    curve = evaluations[key]
                    line = drawn(np.array(list(curve)), np.array(list(curve.values())), most)
                lines[key] = {"title": titles.get(key, key), "lines": [{"setting": 0, "runs": 1, **line}]}
        others = sorted(set(recorded) - set(main), key=lambda key: (key.endswith(STATISTICS), key))
        return {
            "version": version,
            "settings": [{"label": name, "runs": 1}],
            "main": main,
            "others": others,
            "metrics": lines,
        }

    def rows_of(self, name: str, of_evaluations: bool) -> int:
        """Return how many rows a run has to compare."""
        folder = self._catalogue.folder_of(name)
        evaluations = self._catalogue.evaluations_of(name).by_place
        if of_evaluations and evaluations:
            return sum(each.episodes for each in evaluations.values())
        return self._metrics.of(folder).size

    def of_runs(self, folder: Path) -> dict[str, dict[int, float]]:
        """Return the curves of a run folder for a comparison; those of evaluations alone where it has some."""
        evaluations = self._catalogue.evaluations_of(folder.relative_to(self._catalogue.folder).as_posix()).curves()
        return evaluations or self.all_curves(folder)

    def all_curves(self, folder: Path) -> dict[str, dict[int, float]]:
        """Return all metrics of a run folder as reports read them."""
        metrics = self._metrics.of(folder)
        with metrics.lock:
            curves = {key: metrics.curve(key) for key in metrics.names}
        return {key: dict(zip(x.tolist(), y.tolist(), strict=True)) for key, (x, y) in curves.items()}


def output(folder: Path) -> dict[str, Any] | None:
    """Return name and end of what the process of a run printed last into a file; None where it is in none."""
    for file in sorted(_outputs(folder), key=_time, reverse=True):
        try:
            with plain_file(file) as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - _LOG_BYTES))
                text = stream.read().decode("utf-8", "replace")
        except (OSError, StorageError):
            continue
        return {"file": file.name, "text": _last_of_each_line(text), "cut": size > _LOG_BYTES}
    return None


def _outputs(folder: Path) -> list[Path]:
    """Return the files into which processes of a run print: begun from here, as one of several seeds, by assistants."""
    beside = [folder.with_name(f"{folder.name}{end}") for end in (".log", "-assistant.log")]
    return [folder / OUTPUT, *beside]


def _time(file: Path) -> float:
    try:
        return os.lstat(file).st_mtime
    except OSError:
        return 0.0


def _last_of_each_line(text: str) -> str:
    """Return text as a terminal leaves it where lines were written over, as by a progress bar."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def _evaluations(evaluations: Evaluations) -> list[dict[str, Any]]:
    return [
        {
            "place": place,
            "mean": each.mean,
            "low": each.low,
            "high": each.high,
            "length": each.lengths / each.episodes,
            "episodes": each.episodes,
        }
        for place, each in list(evaluations.finite().items())[-_MOST_EVALUATIONS:]
    ]
