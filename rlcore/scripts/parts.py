"""From the arguments of `Trainer` to the parts of its loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch

from rlcore.assembly.assembly import Assembly
from rlcore.assembly.trainer_parts import provenance, trainer_parts
from rlcore.buffers.whole_batch import WholeBatches
from rlcore.collectors.iterable import IterableCollector
from rlcore.errors import did_you_mean
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.hooks.specs import hookimpl
from rlcore.learners.module import ModuleLearner
from rlcore.loggers.metrics import Last
from rlcore.loggers.plain import as_logger
from rlcore.loggers.writer import LogWriter
from rlcore.plugins.host import PluginHost
from rlcore.scripts.settings import Settings, check, horizon
from rlcore.scripts.storage import open_storage
from rlcore.state.generators import seed_all
from rlcore.state.sources import modules_of
from rlcore.state.torchrl import complete
from rlcore.training.entries import check_entries, writers_of
from rlcore.training.parts import TrainerParts
from rlcore.types.context import Context

if TYPE_CHECKING:
    from rlcore.scripts.trainer import Trainer

log = logging.getLogger(__name__)

# whose the state of a module is that a script registered
SCRIPT: Final = "script"


class Assembled(NamedTuple):
    """The parts, and the assembly in which they are registered."""

    parts: TrainerParts
    assembly: Assembly


def assemble(trainer: Trainer, settings: Settings, assembly: Assembly | None) -> Assembled:
    """Return the parts that a trainer runs, and where they are registered.

    Raises:
        ConfigError: an argument that cannot be used.
    """
    check(settings)
    assembly = assembly or Assembly(_context(settings))
    context, register = assembly.context, assembly.register
    collector = as_collector(settings)
    if settings.seed is not None:
        seed_all(collector.set_seed(settings.seed) if hasattr(collector, "set_seed") else settings.seed)
    hooks = LoopHooks(_hooks(settings, assembly))
    built = [*assembly.stateful.values(), context.parts.get("loss")]
    for name, part in _with_state(settings, collector).items():
        if not any(part is known for known in built):
            register(name, part)
    parts = trainer_parts(
        assembly,
        model=context.parts.get("model", settings.loss_module),
        collector=collector,
        buffer=batches(settings, collector, hooks),
        learner=_learner(settings, assembly, hooks),
        hooks=hooks,
        evaluator=settings.evaluator,
        frame_skip=settings.frame_skip or 1,
        writers=open_writers(make_writers(settings), assembly),
        log_interval=settings.log_interval,
        storage=open_storage(settings),
        update_prefix="" if settings.auto_log_optim_steps else None,
    )
    parts.check = partial(_check_entries, parts, context)
    origin = provenance(assembly, PluginHost(), _modules(assembly), torch.get_num_threads())
    parts.provenance = replace(origin, metadata=metadata(trainer))
    return Assembled(parts, assembly)


def _check_entries(parts: TrainerParts, context: Context) -> None:
    """Refuse a loss of rlcore that reads entries which nothing writes, registered operations included."""
    loss = context.parts.get("loss")
    if loss is not None and getattr(parts.learner, "loss_module", None) is loss:
        writers = writers_of(context.parts, parts.collector, parts.buffer, parts.hooks)
        check_entries(loss, type(loss).__name__, writers, parts.estimator)


def describe(trainer: Trainer) -> str:
    """Return what a trainer is made of, on several lines."""
    parts = {
        "loss": trainer.loss_module,
        "collector": trainer.collector,
        "optimizer": trainer.optimizer,
        "logger": trainer.logger,
    }
    lines = [f"{name}={value}" for name, value in parts.items()]
    return "Trainer(\n" + "\n".join("    " + line for text in lines for line in text.splitlines()) + ")"


def _context(settings: Settings) -> Context:
    return Context.alone("trainer", settings.seed or 0, horizon(settings))


def as_collector(settings: Settings) -> Any:
    """Return what collects: the collector itself if it is one of rlcore, or else one over the iterable."""
    if hasattr(settings.collector, "collect"):
        return settings.collector
    return IterableCollector(settings.collector, settings.async_collection)


def _with_state(settings: Settings, collector: Any) -> dict[str, Any]:
    """Return what was handed over and has a state that training changes."""
    found = {"collector": collector, "buffer": complete(settings.replay_buffer), "evaluator": settings.evaluator}
    if isinstance(settings.loss_module, torch.nn.Module):
        found["loss_module"] = complete(settings.loss_module)
    return {name: part for name, part in found.items() if part is not None}


def _hooks(settings: Settings, assembly: Assembly) -> list[Hook]:
    hooks = []
    for number, instance in enumerate(settings.hooks, start=1):
        hooks.append(Hook(f"{type(instance).__name__}-{number}", instance))
        assembly.register(f"hook.{hooks[-1].name}", instance)
    if settings.progress_bar:
        hooks.append(progress_bar_hook(assembly.context))
    if settings.auto_log_optim_steps:
        hooks.append(auto_log_hook())
    return hooks


def progress_bar_hook(context: Context) -> Hook:
    """Return the hook that shows a bar."""
    from rlcore.stock.progress_bar import ProgressBar

    return Hook("progress-bar", ProgressBar(ProgressBar.Config(), context))


def auto_log_hook() -> Hook:
    """Return the hook that logs the count of optimisation steps."""
    return Hook("optim-steps", _OptimSteps())


class _OptimSteps:
    """Logs the count of optimisation steps."""

    @hookimpl
    def post_steps_log(self, trainer: Trainer) -> dict[str, Any]:
        return {"optim_steps": Last(trainer.progress.updates)}


def make_writers(settings: Settings) -> list[LogWriter]:
    """Return the loggers that were handed over, each behind a thread that waits to begin.

    Raises:
        ConfigError: something that cannot log.
    """
    given = settings.logger
    loggers = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
    found = []
    for number, logger in enumerate(loggers, start=1):
        name = type(logger).__name__ if len(loggers) == 1 else f"{type(logger).__name__}-{number}"
        found.append(LogWriter(name, as_logger(logger)))
    return found


def open_writers(writers: list[LogWriter], assembly: Assembly) -> list[LogWriter]:
    """Begin to write, let the loggers take part in checkpoints, and return them."""
    for writer in writers:
        writer.start()
        assembly.register(f"logger.{writer.name}", writer)
    return writers


def batches(settings: Settings, collector: Any, hooks: LoopHooks) -> Any:
    """Return what makes minibatches: a buffer of rlcore, or whole batches of which hooks make them."""
    if hasattr(settings.replay_buffer, "minibatches"):
        return settings.replay_buffer
    warmup_frames = int(getattr(getattr(collector, "source", collector), "init_random_frames", 0) or 0)
    return WholeBatches(
        settings.num_epochs,
        settings.optim_steps_per_batch,
        warmup_frames,
        lambda: hooks.used("process_optim_batch"),
    )


def _learner(settings: Settings, assembly: Assembly, hooks: LoopHooks) -> ModuleLearner:
    def rates() -> dict[str, float]:
        optimizers = {
            name: getattr(part, "optimizer", part)
            for name, part in assembly.stateful.items()
            if name.partition(".")[0].startswith("optimizer")
        }
        found = {name: o.param_groups[0]["lr"] for name, o in optimizers.items() if hasattr(o, "param_groups")}
        return {"lr" if len(found) == 1 else f"lr/{name}": float(rate) for name, rate in found.items()}

    return ModuleLearner(settings.loss_module, hooks, assembly.context.progress, None, rates, assembly.context.group)


def _modules(assembly: Assembly) -> Iterator[str]:
    """Yield the names of the modules that a script's run is written in: its own, and those of what it hands over."""
    yield "__main__"
    for part in assembly.stateful.values():
        yield type(getattr(part, "source", part)).__module__
    yield from modules_of(assembly.context.parts.get("env"))


def metadata(trainer: Trainer) -> Callable[[], dict[str, Any]] | None:
    """Return what asks, at each save, for what the manifest says besides: what a script wants, and what rates it."""
    settings, rated_by = trainer._settings, _rated_by(trainer._settings)
    if settings.checkpoint_metadata is None and rated_by is None:
        return None

    def ask() -> dict[str, Any]:
        said = {} if settings.checkpoint_metadata is None else dict(settings.checkpoint_metadata(trainer))
        if rated_by is None or rated_by in said:
            return said
        counts = {"collected_frames": trainer.progress.frames, "optim_steps": trainer.progress.updates}
        rating = counts.get(rated_by, trainer.metrics.newest(rated_by))
        if rating is None and trainer.progress.frames:
            log.warning(
                "keep_best: there is no metric %r at frame %d%s", rated_by, trainer.progress.frames,
                did_you_mean(rated_by, trainer.metrics.latest),
            )  # fmt: skip
        return said if rating is None else {**said, rated_by: rating}

    return ask


def _rated_by(settings: Settings) -> str | None:
    """Return the name of the number by which a checkpoint is the best; None where that is its evaluation."""
    rotation = settings.checkpoint_rotation
    return rotation.keep_best[0] if rotation is not None and isinstance(rotation.keep_best, tuple) else None
