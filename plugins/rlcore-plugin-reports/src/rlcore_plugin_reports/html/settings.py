"""Settings of the runs on a page: what each is called, and in which keys of the config they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlcore_plugin_reports.differences import differing, labels, shown
from rlcore_plugin_reports.run_files import RunFiles, experiments


@dataclass(frozen=True)
class Setting:
    """Runs whose configs differ in name, folder and seed alone.

    Attributes:
        name: what tells it apart from the other settings of the page, as `lr = 0.01`; else that of its runs.
        runs: one or more.
    """

    name: str
    runs: Sequence[RunFiles]


def settings(runs: Sequence[RunFiles]) -> list[Setting]:
    """Return the settings in the order of their first runs."""
    groups = experiments(runs)
    names = labels(groups)
    return [Setting(names[key], group) for key, group in groups.items()]


def differences(all_settings: Sequence[Setting]) -> dict[str, list[str]]:
    """Return the keys of the configs that are not the same in all settings, with the value of each setting."""
    rows = differing([setting.runs[0].compared for setting in all_settings])
    return {key: [shown(value) for value in row] for key, row in rows.items()}
