"""The run that is proved: a user's config, cut short, with a checkpoint at every iteration and with the fault tools."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tomli_w

from rlcore.config.file import read
from rlcore.config.sections import Config, validate
from rlcore.config.trust import note_written
from rlcore.errors import ConfigError
from rlcore.plugins.discovery import installed
from rlcore.run.build import build
from rlcore.run.ready import Run
from rlcore.types import Buffer, Collector, Stateful
from rlcore.types.optional import offers
from rlcore.types.part import Part, with_defaults
from rlcore_plugin_testing.faults.chain import Job

ITERATIONS: Final = 16
QUICK_ITERATIONS: Final = 8
# deaths of ranks that a run outlives here
MANY: Final = 10_000
# iterations between two checkpoints of several ranks
_BETWEEN: Final = 6
_WATCHING: Final = ("progress-bar", "core:progress-bar")


@dataclass(frozen=True)
class Subject:
    """What is proved.

    Attributes:
        config: as validated.
        run: built once, without a folder.
        per_iteration: how far an iteration takes the run, on its clock.
        until: length of the shortened run.
        scratch: folder for everything.
        options: of every command line.
        ranks: processes that train together.
    """

    config: Config
    run: Run
    per_iteration: int
    until: int
    scratch: Path
    options: tuple[str, ...]
    ranks: int = 1

    @property
    def between_checkpoints(self) -> int:
        """How far apart two checkpoints are, on the clock of the run.

        Of ranks it is several iterations, so that what they keep in memory is proved.
        """
        return self.per_iteration if self.config.ranks is None else _BETWEEN * self.per_iteration

    def job(self, name: str) -> Job:
        """Write the config of a shortened run, and return it."""
        values = copy.deepcopy(self.config.resolved())
        recording, plan = self.scratch / f"{name}.jsonl", self.scratch / f"{name}.plan"
        values["run"] |= {"name": name, "folder": str(self.scratch / "runs")}
        values["metrics"]["every"] = 2 * self.per_iteration
        values["checkpoint"] |= {"every": self.between_checkpoints, "keep_last": 3}
        if "ranks" in values:
            values["ranks"]["restarts"] = MANY
        if "evaluator" in values:
            values["evaluator"]["every"] = 4 * self.per_iteration
        values["logger"] = [{"use": "csv"}] if any(plugin.name == "csv" for plugin in installed()) else []
        values["hook"] = [
            *values.get("hook", []),
            {
                "use": "testing:recorder",
                "name": "prove-recorder",
                "path": str(recording),
                "times": str(times_of(recording)),
            },
            {"use": "testing:killer", "name": "prove-killer", "plan": str(plan)},
        ]
        path = self.scratch / f"{name}.toml"
        values = {section: value for section, value in values.items() if value != []}
        path.write_text(tomli_w.dumps(values), encoding="utf-8")
        note_written(values, path)
        # whoever prints a summary draws the curves of the run first, which takes longer than a short run
        options = ("--quiet", "--until", str(self.until), *self.options)
        return Job(path, self.scratch / "runs" / name, recording, plan, options)

    def without_state(self) -> list[str]:
        """Return the hooks and transforms that save nothing, apart from those that only watch."""
        return [
            name
            for name, part in self.run.trainer.parts.stateful.items()
            if name.partition(".")[0] in ("hook", "transform")
            and not offers(part, Stateful)
            and not with_defaults(part, Part).observer
        ]


def make_subject(
    path: Path, overrides: Sequence[str], enable: Sequence[str], disable: Sequence[str], scratch: Path,
    iterations: int, trust: bool = False,
) -> Subject:  # fmt: skip
    """Read, validate and build a config.

    Raises:
        RlcoreError: the config cannot be used.
    """
    raw = read(path, overrides, trust=trust)
    raw.values["hook"] = [hook for hook in raw.values.get("hook", []) if hook.get("use") not in _WATCHING]
    config = validate(raw, enable, disable)
    built = build(config, write=False)
    built.close()  # before the processes of the proof make theirs
    parts = built.trainer.parts
    ranks = 1 if config.ranks is None else config.ranks.count
    per_iteration = ranks * _frames_per_iteration(parts.collector, parts.frame_skip)
    warmup = 0
    if config.run.clock == "updates":
        per_iteration = _updates_per_iteration(parts)
    else:
        warmup = -(-parts.buffer.warmup_frames // per_iteration)
    options = [option for name in enable for option in ("--enable", name)]
    options += [option for name in disable for option in ("--disable", name)]
    until = min((warmup + iterations) * per_iteration, config.run.horizon)
    return Subject(config, built, per_iteration, until, scratch, tuple(options), ranks)


def times_of(recording: Path) -> Path:
    """Return the file with the seconds that each save took."""
    return recording.with_suffix(".times")


def _updates_per_iteration(parts: Any) -> int:
    buffer, collector = parts.buffer, parts.collector
    batch_steps = with_defaults(collector, Collector).batch_steps
    of_epoch = None if batch_steps is None else with_defaults(buffer, Buffer).most_updates(batch_steps)
    if of_epoch is None:
        raise ConfigError(
            f"[buffer] {type(buffer).__name__} does not say how many updates an iteration makes, so a run with "
            "total_updates cannot be shortened for the proofs; give it a method most_updates"
        )
    return max(1, int(buffer.num_epochs * of_epoch))


def _frames_per_iteration(collector: Any, frame_skip: int) -> int:
    return int(collector.batch_steps) * frame_skip
