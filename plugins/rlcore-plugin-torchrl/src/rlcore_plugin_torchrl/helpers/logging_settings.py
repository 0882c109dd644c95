"""The settings of what a script logs and records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class LoggerConfig:
    """Settings for `get_logger` and `make_trainer`; a part of a script's own settings object.

    Attributes:
        logger: type of the logger, one of those that `rlcore.loggers.get_logger` knows.
        record_video: whether videos of the task are recorded while logging.
        no_video: whether no videos are recorded; True wins.
        exp_name: name of the experiment, see `rlcore.loggers.generate_exp_name`.
        record_interval: batches between two validation rollouts.
        record_frames: steps of a validation rollout.
        recorder_log_keys: entries that a rollout logs; default: the reward.
        offline_logging: whether W&B writes only to disk.
        project_name: of W&B.
    """

    logger: str = "csv"
    record_video: bool = False
    no_video: bool = True
    exp_name: str = ""
    record_interval: int = 1000
    record_frames: int = 1000
    recorder_log_keys: Any = None
    offline_logging: bool = True
    project_name: str = ""
