"""The parts of a trainer as its attributes: what hooks and scripts read of it, and set where they replace a part.

A part lies in `trainer.parts` and nowhere else. The loop reads it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from rlcore.hooks.points import LoopHooks
from rlcore.loggers.metrics import Metrics
from rlcore.training.parts import TrainerParts
from rlcore.types import Buffer, Estimator, Evaluator, Learner, RunInfo, Transform
from rlcore.types.progress import Progress

if TYPE_CHECKING:
    from typing import Self

Part = TypeVar("Part")


class PartAttribute(Generic[Part]):
    """A part as an attribute of the trainer.

    Args:
        name: of the part in `parts`; default: the name of the attribute.
    """

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._attribute = name

    def __set_name__(self, owner: type, name: str) -> None:
        self._name, self._attribute = self._name or name, name

    @overload
    def __get__(self, trainer: None, owner: type) -> Self: ...

    @overload
    def __get__(self, trainer: PartAttributes, owner: type) -> Part: ...

    def __get__(self, trainer: PartAttributes | None, owner: type) -> Self | Part:
        if trainer is None:
            return self
        parts = vars(trainer).get("parts")
        if parts is None:  # in the constructor of a subclass
            kind = type(trainer).__name__
            raise AttributeError(f"{kind}.{self._attribute} is not there before the constructor of Trainer is called")
        part: Part = getattr(parts, self._name)  # one descriptor for all names
        return part

    def __set__(self, trainer: PartAttributes, value: Part) -> None:
        setattr(trainer.parts, self._name, value)


class PartAttributes:
    """The attributes of a trainer that are its parts.

    Attributes:
        parts: what the trainer runs.
        run_info: name, seed, folder and horizon.
        progress: the clocks.
        model: what is trained.
        buffer: what makes minibatches of the batches.
        learner: what takes the optimisation steps.
        metrics: the metrics of the run.
        hooks: the hooks of the run.
        transforms: between the envs and the policy, in order.
        estimator: what writes advantages into batches; None where nothing does.
        evaluator: what measures the policy; None where nothing does.
    """

    parts: TrainerParts

    run_info = PartAttribute[RunInfo]("run")
    progress = PartAttribute[Progress]()
    model = PartAttribute[Any]()
    buffer = PartAttribute[Buffer]()
    learner = PartAttribute[Learner]()
    metrics = PartAttribute[Metrics]()
    hooks = PartAttribute[LoopHooks]()
    transforms = PartAttribute[list[Transform]]()
    estimator = PartAttribute[Estimator | None]()
    evaluator = PartAttribute[Evaluator | None]()

    @property
    def collector(self) -> Any:
        """What collects the batches."""
        return self.parts.collector
