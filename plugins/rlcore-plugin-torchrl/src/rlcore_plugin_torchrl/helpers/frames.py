"""Counts of frames where each step of the env counts for several."""

from __future__ import annotations

from typing import Final, TypeVar

from rlcore.errors import ConfigError
from rlcore_plugin_torchrl.helpers.settings import setting

Settings = TypeVar("Settings")

COUNTS: Final = (
    "max_frames_per_traj",
    "total_frames",
    "frames_per_batch",
    "record_frames",
    "annealing_frames",
    "init_random_frames",
    "init_env_steps",
    "noops",
)


def correct_for_frame_skip(cfg: Settings) -> Settings:
    """Divide every count of frames by `frame_skip`, in place, so that they count steps.

    The counts are `max_frames_per_traj`, `total_frames`, `frames_per_batch`, `record_frames`, `annealing_frames`,
    `init_random_frames`, `init_env_steps` and `noops`, as far as they are there. Division rounds down, but a positive
    count stays at least 1; None and what is not positive, such as -1 for no limit, stay as they are. Call it once.

    Args:
        cfg: settings with `frame_skip` (default 1).

    Returns:
        The same settings.

    Raises:
        ConfigError: `frame_skip` is not a positive whole number.
    """
    skip = setting(cfg, "frame_skip", 1)
    if not isinstance(skip, int) or skip < 1:
        raise ConfigError(f"frame_skip = {skip!r} must be a whole number of at least 1")
    for name in COUNTS:
        count = setting(cfg, name, None)
        if count is not None and count > 0:
            setattr(cfg, name, max(1, count // skip))
    return cfg
