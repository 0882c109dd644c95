"""What went wrong in runs, what the hook `health` warned of, and what they lost, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from rlcore_plugin_health.warnings_file import read_warnings

from rlcore.checkpoints import scan
from rlcore.types import unit_of
from rlcore_plugin_reports.run_files import RunFiles
from rlcore_plugin_reports.tables import differences

_UNFINISHED = ("failed", "failed-resumable", "stopped-resumable")


def findings(run: RunFiles) -> Iterator[str]:
    """Yield a sentence for each."""
    if run.status.get("state") in _UNFINISHED:
        yield f"{run.status['state']}: {run.status.get('reason') or 'at the end that was asked for'}"
    for warned in read_warnings(run.folder):
        yield f"{unit_of(run.clock)} {warned['frames']:,}: {warned['message']}"
    yield from differences(run.folder)
    for cause, count in run.status.get("losses", {}).items():
        yield f"{count:,} {cause}"
    if (run.folder / "stacks.txt").is_file():
        yield "nothing moved for a while; the stacks of all threads are in stacks.txt"
    for entry in scan(run.folder / "faults").entries:
        yield f"a batch that was not finite at {entry.unit} {entry.reached:,}, in faults/{entry.path.name}"
