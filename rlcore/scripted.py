"""From the arguments of `Trainer` to the parts of its loop."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch

from rlcore.adapters.buffer import WholeBatches
from rlcore.adapters.collector import IterableCollector
from rlcore.adapters.learner import ModuleLearner
from rlcore.adapters.logger import as_logger
from rlcore.assembly import Assembly, in_order, observers
from rlcore.checkpoint import Facts, Store
from rlcore.config import CKPT_BACKEND
from rlcore.context import Context
from rlcore.errors import ArgumentTypeError, ConfigError, StorageError
from rlcore.evaluations import Evaluations
from rlcore.exactness import domain
from rlcore.hooks import Hook, LoopHooks
from rlcore.hookspecs import hookimpl
from rlcore.log_writer import LogWriter
from rlcore.manifest import MANIFEST, Entry, read_manifest
from rlcore.metrics import Last, Metrics
from rlcore.parts import Parts
from rlcore.plugins import PluginHost
from rlcore.progress import ENDLESS, Every
from rlcore.random_state import GlobalGenerators, seed_all
from rlcore.saver import EVIDENCE, CheckpointSchedule
from rlcore.sections import find_component, versions
from rlcore.types import Checkpointer

if TYPE_CHECKING:
    from rlcore.trainer import Trainer

log = logging.getLogger(__name__)

# whose the state of a module is that a script registered
SCRIPT: Final = "script"


@dataclass(frozen=True)
class CheckpointRotation:
    """Which checkpoints are kept, and where.

    Attributes:
        directory: made when the first checkpoint is saved.
        keep_last: how many of the newest are kept.
        keep_best: whether the one with the best evaluation is kept too.
    """

    directory: str | Path
    keep_last: int = 2
    keep_best: bool = True


@dataclass(frozen=True)
class Settings:
    """The arguments of `Trainer`, as far as parts and hooks are made of them."""

    collector: Any
    total_frames: int | None
    loss_module: Callable[[Any], Any] | None
    frame_skip: int
    optim_steps_per_batch: int | None
    optimizer: torch.optim.Optimizer | None
    optimization_stepper: Any
    logger: Any
    clip_grad_norm: bool
    clip_norm: float | None
    progress_bar: bool
    seed: int | None
    save_trainer_interval: int
    log_interval: int
    save_trainer_file: str | Path | None
    num_epochs: int
    async_collection: bool
    auto_log_optim_steps: bool
    replay_buffer: Any
    target_net_updater: Any
    batch_size: int | None
    checkpoint: str | None
    checkpoint_rotation: CheckpointRotation | None
    checkpoint_metadata: Callable[[Trainer], Mapping[str, Any]] | None
    learner_backend: str
    learner_backend_options: Mapping[str, Any] | None
    learner_poll_interval: float
    hooks: Iterable[Any]
    evaluator: Any

    @classmethod
    def among(cls, arguments: Mapping[str, Any]) -> Settings:
        """Return those of some arguments that are settings."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls)})

    @classmethod
    def of(cls, parts: Parts, loss: Any, optimizer: Any) -> Settings:
        """Return what the arguments would be that stand for the parts of a config."""
        store, schedule = parts.store, parts.schedule
        return cls(
            collector=getattr(parts.collector, "source", parts.collector),
            total_frames=parts.run.total_frames,
            loss_module=loss,
            frame_skip=parts.frame_skip,
            optim_steps_per_batch=None,
            optimizer=optimizer,
            optimization_stepper=None,
            logger=None,
            clip_grad_norm=True,
            clip_norm=None,
            progress_bar=False,
            seed=parts.run.seed,
            save_trainer_interval=schedule.every.interval if schedule is not None else 10_000,
            log_interval=parts.metrics.every.interval,
            save_trainer_file=store.folder if store is not None else None,
            num_epochs=getattr(parts.buffer, "num_epochs", 1),
            async_collection=False,
            auto_log_optim_steps=parts.update_prefix is not None,
            replay_buffer=parts.buffer,
            target_net_updater=None,
            batch_size=None,
            checkpoint=None,
            checkpoint_rotation=None,
            checkpoint_metadata=None,
            learner_backend="local",
            learner_backend_options=None,
            learner_poll_interval=0.05,
            hooks=(),
            evaluator=parts.evaluator,
        )


class Assembled(NamedTuple):
    """The parts, and the assembly in which they are registered."""

    parts: Parts
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
    progress = register("progress", context.progress)
    receivers = writers(settings, assembly)
    store, evidence = open_stores(settings)
    schedule = register("checkpoints", _schedule(settings))
    metrics = register("metrics", Metrics(Every(settings.log_interval), receivers))
    evaluations = register("evaluations", Evaluations(context.run.folder))
    register("generators", GlobalGenerators())
    parts = Parts(
        run=context.run,
        progress=progress,
        model=context.parts.get("model", settings.loss_module),
        collector=collector,
        buffer=batches(settings, collector, hooks),
        learner=_learner(settings, assembly, hooks),
        metrics=metrics,
        hooks=hooks,
        transforms=context.parts.get("transforms", []),
        estimator=context.parts.get("estimator"),
        evaluator=settings.evaluator,
        store=store,
        evidence=evidence,
        schedule=schedule,
        frame_skip=settings.frame_skip,
        update_prefix="" if settings.auto_log_optim_steps else None,
        heart=context.heart,
        stateful=in_order(assembly.stateful),
        facts=_facts(trainer, settings, assembly),
        evaluations=evaluations,
    )
    return Assembled(parts, assembly)


def open_checkpoint(path: Path, backend: str | None) -> tuple[Entry, dict[str, Any]]:
    """Return the newest checkpoint in a folder, or the one that `path` is, with its states.

    Raises:
        StorageError: there is none that can be loaded.
    """
    if path.is_file():
        raise StorageError(
            f"{path} is a file; checkpoints are folders. Weights of another library are loaded with torch.load and "
            "load_state_dict"
        )
    if (path / MANIFEST).is_file():
        manifest = read_manifest(path)
        store = _store(path.parent, manifest["backend"])
        entry = Entry(path, int(manifest["progress"]["frames"]), manifest)
        return entry, store.load(entry)
    return _store(path, _backend_name(backend)).load_newest()


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


def check(settings: Settings) -> None:
    """Refuse arguments that cannot be used.

    Raises:
        ConfigError: names the argument; one of a wrong type is a `TypeError` besides, any other one a `ValueError`.
    """
    _check_counts(settings)
    if settings.learner_backend != "local":
        raise ConfigError(f"learner_backend = {settings.learner_backend!r}: only 'local' is there")
    if settings.learner_poll_interval <= 0:
        raise ConfigError(f"learner_poll_interval = {settings.learner_poll_interval!r}: expected a positive number")
    if settings.batch_size is not None or settings.learner_backend_options:
        log.warning("batch_size and learner_backend_options belong to a remote learner and change nothing here")
    for name in ("loss_module", "checkpoint_metadata"):
        value = getattr(settings, name)
        if value is not None and not callable(value):
            raise ArgumentTypeError(f"{name}: a {type(value).__name__} cannot be called")
    if settings.checkpoint is not None and not isinstance(settings.checkpoint, str):
        raise ArgumentTypeError(
            f"checkpoint: a {type(settings.checkpoint).__name__}; expected the name of a checkpoint back end, such as "
            "'torch'. What takes part in checkpoints is registered with register_module"
        )
    if settings.checkpoint_rotation is not None and settings.save_trainer_file is not None:
        raise ConfigError("save_trainer_file and checkpoint_rotation both say where checkpoints go; give one of them")


def _check_counts(settings: Settings) -> None:
    for name in ("total_frames", "frame_skip"):
        value = getattr(settings, name)
        if name == "total_frames" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            kind = ConfigError if isinstance(value, int | float) and not isinstance(value, bool) else ArgumentTypeError
            raise kind(f"{name} = {value!r}: expected a positive number of frames")


def horizon(settings: Settings) -> int:
    """Return the frame at which a run ends."""
    return ENDLESS if settings.total_frames is None else settings.total_frames


def _context(settings: Settings) -> Context:
    return Context.alone("trainer", settings.seed or 0, horizon(settings))


def as_collector(settings: Settings) -> Any:
    """Return what collects: the collector itself if it is one of rlcore, or else one over the iterable."""
    if hasattr(settings.collector, "collect"):
        return settings.collector
    return IterableCollector(settings.collector, settings.async_collection)


def _with_state(settings: Settings, collector: Any) -> dict[str, Any]:
    """Return what was handed over and has a state that training changes."""
    found = {"collector": collector, "buffer": settings.replay_buffer, "evaluator": settings.evaluator}
    if isinstance(settings.loss_module, torch.nn.Module):
        found["loss_module"] = settings.loss_module
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


def writers(settings: Settings, assembly: Assembly) -> list[LogWriter]:
    """Return the loggers that were handed over, each behind a thread, and registered for checkpoints."""
    given = settings.logger
    loggers = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
    found = []
    for number, logger in enumerate(loggers, start=1):
        name = type(logger).__name__ if len(loggers) == 1 else f"{type(logger).__name__}-{number}"
        writer = LogWriter(name, as_logger(logger))
        writer.start()
        found.append(assembly.register(f"logger.{name}", writer))
    return found


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

    return ModuleLearner(settings.loss_module, hooks, assembly.context.progress, None, rates)


def _facts(trainer: Trainer, settings: Settings, assembly: Assembly) -> Facts:
    metadata = settings.checkpoint_metadata
    return Facts(
        owners=assembly.owners,
        observers=observers(assembly.stateful),
        versions=versions(PluginHost()),
        domain=domain(assembly.context.device, torch.get_num_threads()),
        metadata=None if metadata is None else lambda: metadata(trainer),
    )


def _schedule(settings: Settings) -> CheckpointSchedule:
    """Return when to save; it has state, so that a trainer which saves nothing can load what others saved."""
    rotation = settings.checkpoint_rotation
    if rotation is None and settings.save_trainer_file is not None:
        rotation = CheckpointRotation(settings.save_trainer_file)
    return CheckpointSchedule(Every(settings.save_trainer_interval), rotation is not None and bool(rotation.keep_best))


def open_stores(settings: Settings) -> tuple[Store | None, Store | None]:
    """Return where checkpoints go, and where batches go that were not finite; None for a run that saves nothing.

    Raises:
        ConfigError: the folder is a file.
    """
    rotation = settings.checkpoint_rotation
    if rotation is None and settings.save_trainer_file is not None:
        rotation = CheckpointRotation(settings.save_trainer_file)
    if rotation is None:
        return None, None
    folder = Path(rotation.directory)
    if folder.is_file():
        raise ConfigError(f"save_trainer_file: {folder} is a file; checkpoints are saved into a folder")
    name = _backend_name(settings.checkpoint)
    return _store(folder, name, rotation), _store(folder / EVIDENCE, name)


def _store(folder: Path, name: str, rotation: CheckpointRotation | None = None) -> Store:
    provided, config = find_component(PluginHost(), "checkpointer", name, {})
    backend: Checkpointer = provided.build(config, Context.alone("trainer").for_component("checkpointer", name))
    if rotation is None:
        return Store(folder, backend, name)
    return Store(folder, backend, name, rotation.keep_last, rotation.keep_best)


def _backend_name(given: str | None) -> str:
    return given or os.environ.get(CKPT_BACKEND) or "torch"
