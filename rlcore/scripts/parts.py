"""From the arguments of `Trainer` to the parts of its loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch

from rlcore.buffers.whole_batch import WholeBatches
from rlcore.collectors.iterable import IterableCollector
from rlcore.core_hooks.progress_bar import ProgressBar
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.hooks.specs import hookimpl
from rlcore.learners.module import ModuleLearner
from rlcore.loggers.metrics import Last
from rlcore.loggers.writer import LogWriter
from rlcore.plugins.adapters import adapted
from rlcore.run.assembly import Assembly
from rlcore.state.fitting import optimizer_of
from rlcore.state.generators import seed_all
from rlcore.state.sources import modules_of
from rlcore.training.checks import check_entries, check_memory, check_some_envs, keepers_of, writers_of
from rlcore.training.parts import TrainerParts
from rlcore.types import Collector
from rlcore.types.context import Context
from rlcore.types.foreign import Collects, MakesMinibatches, WarmsUp, WithParamGroups
from rlcore.types.optional import offers
from rlcore.types.part import with_defaults

if TYPE_CHECKING:
    from rlcore.types.trainer import Trainer

log = logging.getLogger(__name__)


def seed_with(collector: Any, seed: int) -> None:
    """Seed a collector that takes a seed, and torch, NumPy and Python with the seed that follows from it."""
    seed_all(with_defaults(collector, Collector).set_seed(seed))


def check_parts(parts: TrainerParts, context: Context) -> None:
    """Refuse a loss of rlcore that reads entries which nothing writes, and what does not know the model's memory.

    Registered operations count.
    """
    check_memory(context.built.get("model"), {"buffer": parts.buffer, "estimator": parts.estimator})
    if (spec := context.built.get("env_spec")) is not None:
        check_some_envs(parts.collector, spec.num_envs, keepers_of(parts.transforms, parts.buffer, parts.hooks))
    loss = context.built.get("loss")
    if loss is not None and isinstance(parts.learner, ModuleLearner) and parts.learner.loss_module is loss:
        writers = writers_of(context.built, parts.collector, parts.buffer, parts.hooks)
        check_entries(loss, type(loss).__name__, writers, parts.estimator)


def as_collector(collector: Any, in_background: bool) -> Any:
    """Return what collects: the collector itself if it is one of rlcore, or else one over the iterable."""
    return collector if offers(collector, Collects) else IterableCollector(collector, in_background)


def register_handed_over(assembly: Assembly, loss: Any, **parts: Any) -> None:
    """Register what was handed over and has a state that training changes, unless a `Factory` registered it."""
    handed_over = {**parts, "loss_module": adapted(loss) if isinstance(loss, torch.nn.Module) else None}
    # a loss that a factory built has the weights of the model, which are registered
    registered = [*assembly.stateful.values(), assembly.context.built.get("loss")]
    for name, part in handed_over.items():
        if part is not None and not any(part is other for other in registered):
            assembly.register(name, part)


def make_hooks(
    assembly: Assembly, instances: Iterable[Any], shows_bar: Callable[[], bool], auto_log: bool
) -> LoopHooks:
    """Return the hooks that were handed over, and those that show a bar and log the count of optimisation steps."""
    hooks = []
    for number, instance in enumerate(instances, start=1):
        hooks.append(Hook(f"{type(instance).__name__}-{number}", instance))
        assembly.register(f"hook.{hooks[-1].name}", instance)
    hooks.append(Hook("progress-bar", _SwitchedBar(assembly.context, shows_bar)))
    if auto_log:
        hooks.append(Hook("optim-steps", _OptimSteps()))
    return LoopHooks(hooks)


class _SwitchedBar(ProgressBar):
    """A bar that a script switches on and off."""

    def __init__(self, context: Context, is_on: Callable[[], bool]) -> None:
        super().__init__(self.Config(), context)
        self._is_on = is_on

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        if self._is_on():
            super().setup(trainer)

    @hookimpl
    def post_steps_log(self, trainer: Trainer) -> None:
        if self._is_on():
            if self._bar is None:
                super().setup(trainer)
            super().post_steps_log(trainer)


class _OptimSteps:
    """Logs the count of optimisation steps."""

    @hookimpl
    def post_steps_log(self, trainer: Trainer) -> dict[str, Any]:
        return {"optim_steps": Last(trainer.progress.updates)}


def open_writers(logger: Any, assembly: Assembly) -> list[LogWriter]:
    """Begin to write with the loggers that were handed over, each on a thread, and let them take part in checkpoints.

    Raises:
        ConfigError: something that cannot log.
    """
    loggers = list(logger) if isinstance(logger, list | tuple) else [] if logger is None else [logger]
    writers = []
    for number, one in enumerate(loggers, start=1):
        name = type(one).__name__ if len(loggers) == 1 else f"{type(one).__name__}-{number}"
        writers.append(LogWriter(name, one))
    for writer in writers:
        writer.start()
        assembly.register(f"logger.{writer.name}", writer)
    return writers


def make_buffer(trainer: Any, collector: Any, hooks: LoopHooks) -> Any:
    """Return what makes minibatches: a buffer of rlcore, or whole batches of which hooks make them.

    Args:
        trainer: that says how many epochs there are, and how many steps an epoch has.
        collector: of the trainer.
        hooks: of the trainer.
    """
    if offers(trainer.replay_buffer, MakesMinibatches):
        return trainer.replay_buffer
    source = handed_over_as(collector)
    warmup = int(source.init_random_frames or 0) if offers(source, WarmsUp) else 0
    epochs, steps = trainer.num_epochs, trainer.optim_steps_per_batch
    return WholeBatches(epochs, steps, warmup, lambda: hooks.used("process_optim_batch"))


def make_learner(
    loss: Any, hooks: LoopHooks, context: Context, stateful: Callable[[], Mapping[str, Any]]
) -> ModuleLearner:
    """Return what takes the steps.

    Args:
        loss: that is minimised.
        hooks: of the trainer.
        context: of the run.
        stateful: returns what takes part in checkpoints, as optimizers of whom the learning rates are logged do.
    """

    def learning_rates() -> dict[str, float]:
        optimizers = {
            name: optimizer_of(part)
            for name, part in stateful().items()
            if name.partition(".")[0].startswith("optimizer")
        }
        rates = {name: o.param_groups[0]["lr"] for name, o in optimizers.items() if offers(o, WithParamGroups)}
        return {"lr" if len(rates) == 1 else f"lr/{name}": float(rate) for name, rate in rates.items()}

    return ModuleLearner(loss, hooks, context.progress, None, learning_rates, context.group)


def handed_over_as(part: Any) -> Any:
    """Return what a script handed over for a part: the iterable that a collector wraps, or the part itself."""
    return part.source if isinstance(part, IterableCollector) else part


def modules(assembly: Assembly) -> Iterator[str]:
    """Yield the names of the modules that a script's run is written in: its own, and those of what it hands over."""
    yield "__main__"
    for part in assembly.stateful.values():
        yield type(handed_over_as(part)).__module__
    yield from modules_of(assembly.context.built.get("env"))
