"""Attributes that `Trainer` does not have: to set one would do nothing, so it is an error that says what does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rlcore.errors import NoSuchAttributeError, did_you_mean
from rlcore.hooks.operations import DESTINATIONS

# private attributes of TorchRL's trainer that scripts are seen to set, and what does the same here
INSTEAD: Final = {
    "_collected_frames": "collected_frames",
    "_last_log": "log_interval",
    "_last_save": "save_trainer_interval",
    "_log_dict": "metrics.newest(name), which is read only",
    "_log_interval": "log_interval",
    "_modules": "register_module(name, module)",
    "_optim_count": "progress.updates",
    "_pbar": "progress_bar",
    "_stop_reason": "request_stop(reason)",
    "_stop_training": "request_stop(reason)",
}
# the lists of operations there, by destination
_OPERATIONS: Final = {f"_{destination}_ops" for destination in (*DESTINATIONS, "pre_optim")}


def check_name(name: str, attributes: Iterable[str] | None) -> None:
    """Refuse to set an attribute that does not exist.

    Args:
        name: of the attribute.
        attributes: those that there are; None where there may be any, as in a subclass.

    Raises:
        NoSuchAttributeError: says what to use instead.
    """
    if name in INSTEAD or name in _OPERATIONS:
        instead = INSTEAD.get(name, "register_op(destination, operation)")
        raise NoSuchAttributeError(f"Trainer.{name} belongs to another library and does nothing here: use {instead}")
    if attributes is None or name.startswith("_"):
        return
    public = [attribute for attribute in attributes if not attribute.startswith("_")]
    raise NoSuchAttributeError(
        f"Trainer has no attribute {name!r}{did_you_mean(name, public)}; for attributes of your own make a subclass, "
        "and for what belongs in checkpoints use register_module"
    )
