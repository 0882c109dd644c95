"""What is refused of the arguments of `Trainer`."""

from __future__ import annotations

import logging
from typing import Any

from rlcore.errors import ArgumentTypeError, ConfigError
from rlcore.types.progress import ENDLESS

log = logging.getLogger(__name__)


def check(
    *,
    total_frames: Any,
    frame_skip: Any,
    loss_module: Any,
    save_trainer_file: Any,
    checkpoint: Any,
    checkpoint_rotation: Any,
    checkpoint_metadata: Any,
    learner_backend: str,
    learner_backend_options: Any,
    learner_poll_interval: float,
    batch_size: int | None,
    **others: Any,
) -> None:
    """Refuse arguments of `Trainer` that cannot be used.

    Raises:
        ConfigError: names the argument; one of a wrong type is a `TypeError` besides, any other one a `ValueError`.
    """
    _check_count("total_frames", total_frames)
    _check_count("frame_skip", frame_skip)
    if learner_backend != "local":
        raise ConfigError(f"learner_backend = {learner_backend!r}: only 'local' is there")
    if learner_poll_interval <= 0:
        raise ConfigError(f"learner_poll_interval = {learner_poll_interval!r}: expected a positive number")
    if batch_size is not None or learner_backend_options:
        log.warning("batch_size and learner_backend_options belong to a remote learner and change nothing here")
    for name, value in {"loss_module": loss_module, "checkpoint_metadata": checkpoint_metadata}.items():
        if value is not None and not callable(value):
            raise ArgumentTypeError(f"{name}: a {type(value).__name__} cannot be called")
    if checkpoint is not None and not isinstance(checkpoint, str):
        raise ArgumentTypeError(
            f"checkpoint: a {type(checkpoint).__name__}; expected the name of a checkpoint back end, such as "
            "'torch'. What takes part in checkpoints is registered with register_module"
        )
    if checkpoint_rotation is not None and save_trainer_file is not None:
        raise ConfigError("save_trainer_file and checkpoint_rotation both say where checkpoints go; give one of them")


def _check_count(name: str, value: Any) -> None:
    if value is None:  # no end, and one frame a step
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        kind = ConfigError if isinstance(value, int | float) and not isinstance(value, bool) else ArgumentTypeError
        raise kind(f"{name} = {value!r}: expected a positive number of frames")


def horizon(total_frames: int | None) -> int:
    """Return the frame at which a run ends."""
    return ENDLESS if total_frames is None else total_frames
