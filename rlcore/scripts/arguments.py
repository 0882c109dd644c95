"""The arguments of `Trainer`: name, kind and default of each, once; what is refused; each as an attribute.

What each means is in the docstring of `Trainer`; what follows when one is set later is in `following.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlcore.checkpoints.retention import CheckpointRotation
from rlcore.errors import ArgumentTypeError, ConfigError
from rlcore.scripts.policies import LossOfPolicies, check_policies
from rlcore.types.progress import ENDLESS

if TYPE_CHECKING:
    import torch

    from rlcore.assembly.assembly import Assembly

log = logging.getLogger(__name__)

# handed to the constructor and kept in other forms, so that these are no attributes
HANDED_OVER: Final = ("log_timings", "hooks", "evaluator", "assembly")


class Argument:
    """An argument as an attribute of its name: read as it was handed over, set through `_set_argument`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, arguments: Arguments | None, owner: type | None = None) -> Any:
        if arguments is None:
            return self
        try:
            return arguments.__dict__[self._name]
        except KeyError:
            kind = type(arguments).__name__
            raise AttributeError(f"{kind}.{self._name} is not set before Trainer.__init__ is called") from None

    def __set__(self, arguments: Arguments, value: Any) -> None:
        arguments._set_argument(self._name, value)


def _as_attributes(kind: type[Arguments]) -> type[Arguments]:
    """Put an `Argument` in the place of every field, and leave none behind for what is only handed over."""
    for field in fields(kind):
        setattr(kind, field.name, Argument(field.name))
    constructor: Any = kind.__init__
    for name in HANDED_OVER:
        delattr(kind, name)
        annotation = constructor.__annotations__[name]
        constructor.__annotations__[name] = annotation.removeprefix("InitVar[").removesuffix("]")
    constructor.__qualname__ = "Trainer.__init__"  # whose it is for those who read a signature or an error
    return kind


@_as_attributes
@dataclass(kw_only=True, eq=False, repr=False)
class Arguments:
    """What `Trainer` is called with. The constructor is made of the fields."""

    collector: Any
    total_frames: int | None
    loss_module: Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]] | None = None
    frame_skip: int | None = 1
    optim_steps_per_batch: int | None = None
    optimizer: torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer] | None = None
    optimization_stepper: Any = None
    logger: Any = None
    clip_grad_norm: bool = True
    clip_norm: float | None = None
    progress_bar: bool = True
    seed: int | None = None
    save_trainer_interval: int = 10_000
    log_interval: int = 10_000
    save_trainer_file: str | Path | None = None
    num_epochs: int = 1
    async_collection: bool = False
    log_timings: InitVar[bool] = False
    auto_log_optim_steps: bool = True
    replay_buffer: Any = None
    target_net_updater: Any = None
    checkpoint: str | None = None
    checkpoint_rotation: CheckpointRotation | None = None
    checkpoint_metadata: Callable[[Any], Mapping[str, Any]] | None = None
    learner_backend: str = "local"
    batch_size: int | None = None
    learner_backend_options: Mapping[str, Any] | None = None
    learner_poll_interval: float = 0.05
    hooks: InitVar[Iterable[Any]] = ()
    evaluator: InitVar[Any] = None
    assembly: InitVar[Assembly | None] = None

    def __post_init__(self, log_timings: bool, hooks: Iterable[Any], evaluator: Any, assembly: Assembly | None) -> None:
        """Make something of the arguments, once all are there."""

    def _set_argument(self, name: str, value: Any) -> None:
        """Keep a value; losses by policy as one module."""
        if name == "loss_module" and isinstance(value, Mapping):
            value = LossOfPolicies(value)
        self.__dict__[name] = value


def check(arguments: Arguments) -> None:
    """Refuse arguments that cannot be used.

    Raises:
        ConfigError: names the argument; one of a wrong type is a `TypeError` besides, any other one a `ValueError`.
    """
    _check_counts(arguments)
    if arguments.learner_backend != "local":
        raise ConfigError(f"learner_backend = {arguments.learner_backend!r}: only 'local' is there")
    if arguments.learner_poll_interval <= 0:
        raise ConfigError(f"learner_poll_interval = {arguments.learner_poll_interval!r}: expected a positive number")
    if arguments.batch_size is not None or arguments.learner_backend_options:
        log.warning("batch_size and learner_backend_options belong to a remote learner and change nothing here")
    called = {"loss_module": arguments.loss_module, "checkpoint_metadata": arguments.checkpoint_metadata}
    for name, value in called.items():
        if value is not None and not callable(value):
            raise ArgumentTypeError(f"{name}: a {type(value).__name__} cannot be called")
    check_policies(arguments.loss_module, arguments.optimizer, arguments.optimization_stepper)
    if arguments.checkpoint is not None and not isinstance(arguments.checkpoint, str):
        raise ArgumentTypeError(
            f"checkpoint: a {type(arguments.checkpoint).__name__}; expected the name of a checkpoint back end, such as "
            "'torch'. What takes part in checkpoints is registered with register_module"
        )
    if arguments.checkpoint_rotation is not None and arguments.save_trainer_file is not None:
        raise ConfigError("save_trainer_file and checkpoint_rotation both say where checkpoints go; give one of them")


def _check_counts(arguments: Arguments) -> None:
    counts: dict[str, Any] = {"total_frames": arguments.total_frames, "frame_skip": arguments.frame_skip}
    for name, value in counts.items():
        if value is None:  # no end, and one frame a step
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            kind = ConfigError if isinstance(value, int | float) and not isinstance(value, bool) else ArgumentTypeError
            raise kind(f"{name} = {value!r}: expected a positive number of frames")


def horizon(arguments: Arguments) -> int:
    """Return the frame at which a run ends."""
    return ENDLESS if arguments.total_frames is None else arguments.total_frames
