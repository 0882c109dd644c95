"""From the arguments of `Trainer` to the parts of its loop."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from rlcore.assembly.assembly import Assembly
from rlcore.assembly.trainer_parts import provenance, trainer_parts
from rlcore.buffers.whole_batch import WholeBatches
from rlcore.collectors.iterable import IterableCollector
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.hooks.specs import hookimpl
from rlcore.learners.module import ModuleLearner
from rlcore.loggers.metrics import Last
from rlcore.loggers.writer import LogWriter
from rlcore.plugins.host import PluginHost
from rlcore.restore.optimizers import optimizer_of
from rlcore.scripts.arguments import Arguments
from rlcore.scripts.storage import open_storage
from rlcore.state.generators import seed_all
from rlcore.state.sources import modules_of
from rlcore.state.torchrl import complete
from rlcore.training.entries import check_entries, writers_of
from rlcore.training.memory import check_memory
from rlcore.training.parts import TrainerParts
from rlcore.training.some_envs import check_some_envs, keepers_of
from rlcore.types.context import Context
from rlcore.types.foreign import Collects, MakesMinibatches, WarmsUp, WithParamGroups
from rlcore.types.optional import Seedable, offers

if TYPE_CHECKING:
    from rlcore.types.trainer import Trainer

log = logging.getLogger(__name__)


def make_parts(arguments: Arguments, hooks: Iterable[Any], evaluator: Any, assembly: Assembly) -> TrainerParts:
    """Return the parts that a trainer runs, registered in the assembly.

    Args:
        arguments: of the trainer.
        hooks: of rlcore, with methods marked `@hookimpl`.
        evaluator: of rlcore; None where nothing measures the policy.
        assembly: the parts that a `Factory` built, or none.

    Raises:
        ConfigError: an argument that cannot be used.
    """
    context = assembly.context
    collector = as_collector(arguments)
    if arguments.seed is not None:
        seed_with(collector, arguments.seed)
    loop_hooks = LoopHooks(_hooks(arguments, hooks, assembly))
    _register_handed_over(arguments, collector, evaluator, assembly)
    parts = trainer_parts(
        assembly,
        model=context.built.get("model", arguments.loss_module),
        collector=collector,
        buffer=make_buffer(arguments, collector, loop_hooks),
        learner=_learner(arguments, assembly, loop_hooks),
        hooks=loop_hooks,
        evaluator=evaluator,
        frame_skip=arguments.frame_skip or 1,
        writers=open_writers(make_writers(arguments), assembly),
        log_interval=arguments.log_interval,
        storage=open_storage(arguments),
        update_prefix="" if arguments.auto_log_optim_steps else None,
    )
    parts.check = partial(_check_entries, parts, context)
    parts.provenance = provenance(assembly, PluginHost(), _modules(assembly), torch.get_num_threads())
    return parts


def seed_with(collector: Any, seed: int) -> None:
    """Seed a collector that takes a seed, and torch, NumPy and Python with the seed that follows from it."""
    seed_all(collector.set_seed(seed) if offers(collector, Seedable) else seed)


def _check_entries(parts: TrainerParts, context: Context) -> None:
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


def as_collector(arguments: Arguments) -> Any:
    """Return what collects: the collector itself if it is one of rlcore, or else one over the iterable."""
    if offers(arguments.collector, Collects):
        return arguments.collector
    return IterableCollector(arguments.collector, arguments.async_collection)


def _register_handed_over(arguments: Arguments, collector: Any, evaluator: Any, assembly: Assembly) -> None:
    """Register what was handed over and has a state that training changes, unless a `Factory` registered it."""
    handed_over = {"collector": collector, "buffer": complete(arguments.replay_buffer), "evaluator": evaluator}
    if isinstance(arguments.loss_module, torch.nn.Module):
        handed_over["loss_module"] = complete(arguments.loss_module)
    # a loss that a factory built has the weights of the model, which are registered
    registered = [*assembly.stateful.values(), assembly.context.built.get("loss")]
    for name, part in handed_over.items():
        if part is not None and not any(part is other for other in registered):
            assembly.register(name, part)


def _hooks(arguments: Arguments, instances: Iterable[Any], assembly: Assembly) -> list[Hook]:
    hooks = []
    for number, instance in enumerate(instances, start=1):
        hooks.append(Hook(f"{type(instance).__name__}-{number}", instance))
        assembly.register(f"hook.{hooks[-1].name}", instance)
    if arguments.progress_bar:
        hooks.append(progress_bar_hook(assembly.context))
    if arguments.auto_log_optim_steps:
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


def make_writers(arguments: Arguments) -> list[LogWriter]:
    """Return the loggers that were handed over, each behind a thread that waits to begin.

    Raises:
        ConfigError: something that cannot log.
    """
    given = arguments.logger
    loggers = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
    writers = []
    for number, logger in enumerate(loggers, start=1):
        name = type(logger).__name__ if len(loggers) == 1 else f"{type(logger).__name__}-{number}"
        writers.append(LogWriter(name, logger))
    return writers


def open_writers(writers: list[LogWriter], assembly: Assembly) -> list[LogWriter]:
    """Begin to write, let the loggers take part in checkpoints, and return them."""
    for writer in writers:
        writer.start()
        assembly.register(f"logger.{writer.name}", writer)
    return writers


def make_buffer(arguments: Arguments, collector: Any, hooks: LoopHooks) -> Any:
    """Return what makes minibatches: a buffer of rlcore, or whole batches of which hooks make them."""
    if offers(arguments.replay_buffer, MakesMinibatches):
        return arguments.replay_buffer
    source = handed_over_as(collector)
    return WholeBatches(
        arguments.num_epochs,
        arguments.optim_steps_per_batch,
        int(source.init_random_frames or 0) if offers(source, WarmsUp) else 0,
        lambda: hooks.used("process_optim_batch"),
    )


def _learner(arguments: Arguments, assembly: Assembly, hooks: LoopHooks) -> ModuleLearner:
    def learning_rates() -> dict[str, float]:
        optimizers = {
            name: optimizer_of(part)
            for name, part in assembly.stateful.items()
            if name.partition(".")[0].startswith("optimizer")
        }
        rates = {name: o.param_groups[0]["lr"] for name, o in optimizers.items() if offers(o, WithParamGroups)}
        return {"lr" if len(rates) == 1 else f"lr/{name}": float(rate) for name, rate in rates.items()}

    loss: Any = arguments.loss_module  # those of several policies are one module by now
    return ModuleLearner(loss, hooks, assembly.context.progress, None, learning_rates, assembly.context.group)


def handed_over_as(part: Any) -> Any:
    """Return what a script handed over for a part: the iterable that a collector wraps, or the part itself."""
    return part.source if isinstance(part, IterableCollector) else part


def _modules(assembly: Assembly) -> Iterator[str]:
    """Yield the names of the modules that a script's run is written in: its own, and those of what it hands over."""
    yield "__main__"
    for part in assembly.stateful.values():
        yield type(handed_over_as(part)).__module__
    yield from modules_of(assembly.context.built.get("env"))
