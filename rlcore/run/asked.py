"""What a command asks of a run: which config, in which folder, how far, and how to go on; light to import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlcore.config.common_keys import Defaults
from rlcore.config.core import RanksConfig
from rlcore.config.raw import RawConfig
from rlcore.config.validation import core_section
from rlcore.types.progress import Clock


@dataclass(frozen=True)
class ResumeOptions:
    """What a resume may do beyond going on with everything as it was.

    Attributes:
        drop: states of the checkpoint to leave unused.
        fresh: components to start over.
        accept_changes: go on with another config, without the promise of an exact resume.
    """

    drop: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    accept_changes: bool = False


@dataclass(frozen=True)
class Asked:
    """What `rlcore train` was asked to do; it can be pickled.

    Attributes:
        raw: the config, before anything of it was checked.
        place: the run folder as the user named it.
        clock: of the run.
        resume: how to go on with the run that is there; None to begin one.
        until: where on the clock to stop.
        time_limit: at which second of the system's clock to stop, and how long that is in words.
        quiet: whether nothing is shown.
        grace: seconds that a stop by a signal may take.
        enable: plugins that it imports besides.
        disable: plugins that it does not import.
    """

    raw: RawConfig
    place: Path
    clock: Clock
    resume: ResumeOptions | None = None
    until: int | None = None
    time_limit: tuple[float, str] | None = None
    quiet: bool = False
    grace: float = 20.0
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()

    @property
    def ranks(self) -> RanksConfig:
        """`[ranks]`; with its defaults where it does not fit, which validating the config says."""
        ranks: RanksConfig | None = core_section(self.raw, "ranks", [], Defaults(self.raw))
        return ranks or RanksConfig.model_validate({})
