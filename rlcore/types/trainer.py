"""What a hook may touch: the trainer, its metrics, its hooks; and the points that a learner calls.

A hook gets the trainer as an argument. What stands here stays as it is; what else the object has may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rlcore.types.data import Buffer, Collector, Evaluator
from rlcore.types.learning import Learner
from rlcore.types.progress import Progress
from rlcore.types.records import EvaluationResult, RunInfo

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types.records import Key


class RunMetrics(Protocol):
    """The metrics of a run: values come in at any time, and are reduced and written when they are due.

    Attributes:
        latest: the numbers of the latest row, by name.
        on_bar: names of metrics that the progress bar shows besides its own; a hook may add to it.
        written_at: frames at which the latest row was written.
        writers: one per logger; empty where nothing is logged.
    """

    latest: dict[str, float]
    on_bar: set[str]
    written_at: int

    @property
    def writers(self) -> list[Any]:
        """One per logger; empty where nothing is logged."""
        ...

    def add(self, values: Mapping[str, Any], prefix: str = "") -> None:
        """Take values in, by name: numbers, tensors of any shape, or `Last`; averaged until they are written."""
        ...

    def extend(self, key: str, values: Iterable[float]) -> None:
        """Take several values of one metric in; written are their mean, standard deviation, least and most."""
        ...

    def newest(self, key: str) -> float | None:
        """Return the value that came in last, written or not; None where there was none."""
        ...

    def log_image(self, name: str, image: Any, step: int) -> None:
        """Hand an image `[C, H, W]`, uint8, to every logger; `step` is in frames."""
        ...

    def log_video(self, name: str, video: Any, step: int, fps: int = 30) -> None:
        """Hand videos `[N, T, C, H, W]`, uint8, to every logger."""
        ...

    def log_histogram(self, name: str, data: Any, step: int) -> None:
        """Hand numbers of any shape to every logger, to be shown as a histogram."""
        ...

    def log_text(self, name: str, text: str, step: int) -> None:
        """Hand a text to every logger."""
        ...


class InnerPoints(Protocol):
    """The points that a learner calls within an update, and whether anything implements one.

    Attributes:
        asked: returns whether this iteration, with so many more frames to count in it, ends with a row of metrics, an
            evaluation or a checkpoint: with something that asks for what a device holds.
    """

    asked: Callable[[int], bool]

    def used(self, point: str) -> bool:
        """Return whether any hook implements the point."""
        ...

    def process_optim_batch(self, minibatch: Mapping[Key, Tensor], learner: Learner) -> Mapping[Key, Tensor]:
        """Return the minibatch `[sample]` as the hooks make it."""
        ...

    def post_loss(
        self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> dict[str, Tensor]:
        """Return the losses as the hooks make them, before backward."""
        ...

    def optimizer(
        self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> Mapping[str, Tensor]:
        """Have the one hook that owns the step do backward and step, and return its metrics."""
        ...

    def post_optim(self, minibatch: Mapping[Key, Tensor], learner: Learner) -> None:
        """Tell the hooks that the step of the optimizers was taken."""
        ...

    def post_optim_log(
        self, metrics: Mapping[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> Mapping[str, Any]:
        """Return what the hooks have to log of this update."""
        ...


class TrainerHooks(InnerPoints, Protocol):
    """The hooks of a run.

    Attributes:
        hooks: in the order in which they are called; each has a name, its instance and the seconds spent in it.
        collected: what the hooks so far returned at the collect point that is being called.
    """

    hooks: tuple[Any, ...]
    collected: Mapping[str, Any]


class Trainer(Protocol):
    """The trainer, as hooks and operations may use it."""

    progress: Progress
    stop_at: int
    stop_reason: str | None

    @property
    def run_info(self) -> RunInfo:
        """Name, seed, folder and horizon."""
        ...

    @property
    def model(self) -> Any:
        """What is trained."""
        ...

    @property
    def learner(self) -> Learner:
        """What takes the optimisation steps."""
        ...

    @property
    def collector(self) -> Collector:
        """What collects the batches."""
        ...

    @property
    def buffer(self) -> Buffer:
        """What makes minibatches of the batches."""
        ...

    @property
    def evaluator(self) -> Evaluator | None:
        """What measures the policy, where anything does."""
        ...

    @property
    def metrics(self) -> RunMetrics:
        """The metrics of the run."""
        ...

    @property
    def hooks(self) -> TrainerHooks:
        """The hooks of the run."""
        ...

    @property
    def batch(self) -> TensorDict | None:
        """The latest batch `[env, time]`; the next iteration may overwrite its tensors."""
        ...

    @property
    def seconds_trained(self) -> float:
        """Seconds spent collecting and optimising in this process."""
        ...

    @property
    def last_checkpoint(self) -> Path | None:
        """Folder of the latest checkpoint of this process."""
        ...

    @property
    def last_evaluation(self) -> EvaluationResult | None:
        """The latest evaluation of the run."""
        ...

    @property
    def best_evaluation(self) -> EvaluationResult | None:
        """The evaluation with the highest mean return."""
        ...

    @property
    def why_inexact(self) -> tuple[str, ...]:
        """Why a resume from here would not give the bits of an uninterrupted run; empty where it would."""
        ...

    def lost(self) -> dict[str, int]:
        """Return what the run lost without ending, by cause: episodes, updates, checkpoints, rows of logs."""
        ...

    def request_stop(self, reason: str | None = None) -> None:
        """Ask the run to stop; the iteration is finished, every hook of it runs, the final checkpoint is saved."""
        ...

    def evaluate(self) -> EvaluationResult:
        """Evaluate the policy now."""
        ...

    def save(self) -> Path | None:
        """Save a checkpoint now and return its folder; None for a run that writes nothing."""
        ...


class ScriptTrainer(Trainer, Protocol):
    """The trainer, as a hook object registers itself with it.

    Attributes:
        clip_grad_norm: whether `clip_norm` limits the norm of all gradients, rather than each element.
        clip_norm: the limit; None for no clipping.
    """

    clip_grad_norm: bool
    clip_norm: float | None

    @property
    def app_state(self) -> dict[str, Any]:
        """Everything that takes part in checkpoints, by name."""
        ...

    @property
    def loss_module(self) -> Any:
        """From a batch to losses."""
        ...

    @property
    def optimizer(self) -> Any:
        """The optimizer of all losses, where there is one."""
        ...

    @property
    def collector(self) -> Any:
        """What collects the batches, as it was handed over."""
        ...

    @property
    def replay_buffer(self) -> Any:
        """The replay buffer that was handed over."""
        ...

    def register_op(self, dest: str, op: Callable[..., Any], **kwargs: Any) -> None:
        """Call `op` at a destination, after what is registered there, from the next iteration on."""
        ...

    def register_module(self, module_name: Any, module: Any) -> None:
        """Make an object with `state_dict` and `load_state_dict` part of every checkpoint."""
        ...

    def compute_loss(self, sub_batch: TensorDict, method: str | None = None) -> Any:
        """Return the losses of a sub-batch, of the loss module or of one of its methods."""
        ...
