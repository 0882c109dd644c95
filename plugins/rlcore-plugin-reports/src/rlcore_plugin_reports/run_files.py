"""What the files of run folders say, and which of several runs are seeds of one experiment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from rlcore.errors import ConfigError
from rlcore.run_folder import WATCHING, read_config, read_status
from rlcore.types import Clock
from rlcore_plugin_reports.curves import Curve, read_metrics, read_timings

# sections that change nothing in what is trained or measured
_BESIDE: Final = ("versions", "logger", "checkpoint")
# hooks that change nothing either
_HOOKS_BESIDE: Final = (*WATCHING, "core:health")
_OF_ONE_RUN: Final = ("name", "seed", "folder", "threads")
_SPEED: Final = "time/{}_per_second"


@dataclass(frozen=True)
class RunFiles:
    """What the files of a run folder say."""

    folder: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved config; empty where it cannot be read."""
        return read_config(self.folder)

    def section(self, name: str) -> dict[str, Any]:
        """Return a section of the config; empty where it is none."""
        section = self.config.get(name)
        return section if isinstance(section, dict) else {}

    def used(self, name: str) -> str:
        """Return what a section names: the id of an env, or its component."""
        section = self.section(name)
        return str(section.get("id", section.get("use", ""))).rpartition(":")[2]

    @property
    def clock(self) -> Clock:
        """What the length of the run is counted in."""
        return "updates" if "total_updates" in self.section("run") else "frames"

    @property
    def total(self) -> int:
        """For how long the run is to go on, on its clock; 0 where the config does not say."""
        total = self.section("run").get(f"total_{self.clock}")
        return total if isinstance(total, int) else 0

    @cached_property
    def status(self) -> dict[str, Any]:
        """Where the run stands."""
        return read_status(self.folder)

    @cached_property
    def metrics(self) -> dict[str, Curve]:
        """Curves by metric; none where neither metrics nor evaluations were written."""
        try:
            return read_metrics(self.folder)
        except ConfigError:
            return {}

    @cached_property
    def timings(self) -> dict[str, Curve]:
        """What took how long, by metric; none where no logger wrote it."""
        return read_timings(self.folder)

    @property
    def speed(self) -> float | None:
        """Frames or updates per second, evaluation not counted; None where no logger wrote it."""
        seconds, speeds = self.seconds_trained, self.timings.get(_SPEED.format(self.clock))
        return max(speeds) / seconds if seconds and speeds else None

    @property
    def seconds_trained(self) -> float | None:
        """Time of the training over all resumes, evaluation not counted; None where no logger wrote it."""
        speeds = self.timings.get(_SPEED.format(self.clock), {})
        frames = sorted(speeds)
        steps = zip([0, *frames], frames, strict=False)
        return sum((end - begin) / speeds[end] for begin, end in steps if speeds[end] > 0) or None

    @property
    def compared(self) -> dict[str, Any]:
        """The config without what tells the runs of one experiment apart, and what only watches or keeps them."""
        config = {name: section for name, section in self.config.items() if name not in _BESIDE}
        config["run"] = {k: v for k, v in self.section("run").items() if k not in _OF_ONE_RUN}
        hooks = self.config.get("hook", [])
        if isinstance(hooks, list):
            config["hook"] = [
                hook for hook in hooks if not isinstance(hook, dict) or hook.get("use") not in _HOOKS_BESIDE
            ]
        return config

    @property
    def setting(self) -> str:
        """Equal for the runs of one experiment; without a config, the folder."""
        if not self.config:
            return str(self.folder.resolve())
        return json.dumps(self.compared, sort_keys=True, default=str)


def experiments(runs: Sequence[RunFiles]) -> dict[str, list[RunFiles]]:
    """Return the runs of each experiment, by the name of its first run.

    Runs are of one experiment when their configs differ in name, folder and seed alone; threads, loggers, checkpoints
    and what shows progress may differ too.
    """
    by_setting: dict[str, list[RunFiles]] = {}
    for run in runs:
        by_setting.setdefault(run.setting, []).append(run)
    groups: dict[str, list[RunFiles]] = {}
    for group in by_setting.values():
        name = group[0].folder.resolve().name
        groups[name if name not in groups else str(group[0].folder)] = group
    return groups
