"""The sections of a config that are the core's own."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, Field, create_model, field_validator, model_validator

from rlcore.plugins.known import component_names
from rlcore.types.progress import ENDLESS, Clock
from rlcore.types.settings import FREE_AT_RESUME, Interval

SAFE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
DEVICE: Final = re.compile(r"auto|cpu|cuda(:\d+)?|mps")
# set in the processes that torchrun starts
TORCHRUN: Final = "TORCHELASTIC_RUN_ID"
# a field that is called like a word of Python cannot be written in a class
_Async: Any = create_model(
    "_Async",
    **{"async": (bool, Field(False, description="copy the state, and write it while training goes on"))},  # type: ignore[call-overload]
)


class RunConfig(BaseModel, extra="forbid"):
    """The run itself."""

    name: str = Field("run", description="name of the run and of its folder")
    seed: int = Field(1, ge=0, lt=2**63, description="the one seed; every generator is derived from it")
    total_frames: int | None = Field(
        None, gt=0, description="environment frames to train for, and the horizon of every schedule"
    )
    total_updates: int | None = Field(
        None, gt=0, description="instead of total_frames: updates to train for; intervals count updates then too"
    )
    device: str = Field("auto", description="auto (CUDA where there is one, else the CPU), cpu, cuda, cuda:N or mps")
    folder: str = Field("runs", description="where run folders are made, relative to the working directory")
    hang_after: int = Field(
        60,
        ge=0,
        description="seconds without a step after which a run ends; 0: never",
        json_schema_extra=FREE_AT_RESUME,
    )
    deterministic: bool = Field(False, description="refuse kernels of CUDA that do not repeat to the bit")
    threads: int = Field(1, ge=1, description="CPU threads of torch; one is fastest for small networks")

    @property
    def place(self) -> Path:
        """The run folder."""
        return Path(self.folder) / self.name

    @property
    def frames(self) -> int:
        """Environment frames to train for; without an end where the run has its length in updates."""
        return ENDLESS if self.total_frames is None else self.total_frames

    @property
    def clock(self) -> Clock:
        """What the length of the run is counted in."""
        return "frames" if self.total_updates is None else "updates"

    @property
    def horizon(self) -> int:
        """How long the run is, on its clock."""
        return self.frames if self.total_updates is None else self.total_updates

    @model_validator(mode="after")
    def _has_one_clock(self) -> Self:
        lengths = [self.total_frames is not None, self.total_updates is not None]
        if all(lengths):
            raise ValueError(
                f"total_frames = {self.total_frames} and total_updates = {self.total_updates} both say how long the "
                "run is; leave one out"
            )
        if not any(lengths):
            raise ValueError(
                "total_frames: missing, and the core needs it; or total_updates, which counts the run in updates"
            )
        return self

    @field_validator("name")
    @classmethod
    def _stays_inside(cls, name: str) -> str:
        if not SAFE_NAME.fullmatch(name):
            raise ValueError(
                "a run name is a folder name: letters, digits, '.', '_' and '-', at most 100, first a letter or digit"
            )
        return name

    @field_validator("device")
    @classmethod
    def _known_device(cls, device: str) -> str:
        if not DEVICE.fullmatch(device):
            raise ValueError("a device is auto, cpu, cuda, cuda:N or mps")
        return device


class PluginsConfig(BaseModel, extra="forbid"):
    """Plugins beyond those that `use` names."""

    enable: list[str] = Field(default_factory=list, description="further plugins to import")
    disable: list[str] = Field(default_factory=list, description="plugins that must not be imported")
    files: list[str] = Field(default_factory=list, description="loose plugin files, relative to the config")
    path: list[str] = Field(
        default_factory=list, description="folders of modules that the config names, besides its own; relative to it"
    )


class MetricsConfig(BaseModel, extra="forbid"):
    """When metrics are reduced and written."""

    every: Interval = Field(10_000, description="interval of writing; values in between are reduced, none is lost")


class CheckpointConfig(_Async):  # type: ignore[misc]
    """When checkpoints are written and which are kept; further keys belong to the back end."""

    every: Interval | None = Field(None, description="interval of saving; default: a tenth of the run")
    keep_last: int = Field(2, ge=1, description="how many of the latest checkpoints are kept")
    keep_best: bool = Field(True, description="also keep the checkpoint with the best evaluation")
    keep_every: int | None = Field(
        None, ge=1, description="also keep the first checkpoint of every so many frames; default: none for that"
    )
    on_failure: Literal["stop", "warn"] = Field(
        "stop", description="a checkpoint that cannot be written: stop, or warn and go on; the last one always stops"
    )

    @property
    def in_background(self) -> bool:
        """The key `async`."""
        return bool(getattr(self, "async"))  # a keyword of Python


class RanksConfig(BaseModel, extra="allow"):
    """Several processes that train together, called ranks; a config without the section trains in one.

    Further keys are those of what starts the ranks.
    """

    use: str = Field(
        "auto",
        description="what starts the ranks; auto: torchrun inside of torchrun, else processes",
        json_schema_extra=FREE_AT_RESUME,
    )
    count: int = Field(2, ge=1, description="ranks; divides the envs, the frames of a batch, minibatches and capacity")
    restarts: int = Field(
        3,
        ge=0,
        description="deaths of ranks without progress in between after which the run ends",
        json_schema_extra=FREE_AT_RESUME,
    )
    deadline: float = Field(
        60.0,
        gt=0,
        description="seconds in which a rank does not move at all, after which it counts as dead",
        json_schema_extra=FREE_AT_RESUME,
    )

    @property
    def launcher(self) -> str:
        """The component that `use` names; in a process that torchrun started, `auto` is `torchrun`."""
        use = self.use
        if use == "auto":
            use = "torchrun" if TORCHRUN in os.environ else "processes"
        plugin = component_names("launcher").get(use)
        return f"{plugin}:{use}" if plugin else use

    @property
    def launcher_keys(self) -> dict[str, Any]:
        """The keys of what starts the ranks."""
        return dict(self.model_extra or {})


# the component of a section that says nothing else; see `default_use`
DEFAULT_USE: Final = {"collector": "local", "buffer": "rollout", "learner": "gradient", "checkpoint": "torch"}
# the collector of a run that is counted in updates and has no section [collector]
_COLLECTS_NOTHING: Final = "core:none"
# what the command line adds to a config that says nothing of hooks, or of loggers
OBSERVERS: Final[dict[str, dict[str, Any]]] = {
    "hook": {"use": "core:progress-bar", "always": False},
    "logger": {"use": "csv:csv"},
}
CORE_SECTIONS: Final[dict[str, type[BaseModel]]] = {
    "run": RunConfig,
    "plugins": PluginsConfig,
    "metrics": MetricsConfig,
    "ranks": RanksConfig,
}


def default_use(section: str, values: Mapping[str, Any]) -> str | None:
    """Return the component of a section that names none, or None where it has to name one.

    Args:
        section: its name.
        values: of the whole config, as the file says them.
    """
    run = values.get("run")
    if section == "collector" and "collector" not in values and isinstance(run, Mapping) and "total_updates" in run:
        return _COLLECTS_NOTHING
    return DEFAULT_USE.get(section)
