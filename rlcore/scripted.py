"""From the arguments of `Trainer` to the parts of its loop."""

from __future__ import annotations

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
from rlcore.errors import ConfigError, StorageError
from rlcore.evaluations import Evaluations
from rlcore.exactness import domain
from rlcore.hooks import Hook, LoopHooks
from rlcore.hookspecs import hookimpl
from rlcore.log_writer import LogWriter
from rlcore.manifest import MANIFEST, Entry, read_manifest
from rlcore.metrics import Last, Metrics
from rlcore.parts import Parts
from rlcore.plugins import PluginHost
from rlcore.progress import Every
from rlcore.random_state import GlobalGenerators, seed_all
from rlcore.saver import EVIDENCE, CheckpointSchedule
from rlcore.sections import find_component, versions
from rlcore.types import Checkpointer

if TYPE_CHECKING:
    from rlcore.trainer import Trainer

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
    """The arguments of `Trainer`, as far as parts are made of them."""

    collector: Any
    total_frames: int
    loss_module: Callable[[Any], Any] | None
    frame_skip: int
    optim_steps_per_batch: int | None
    optimization_stepper: Any
    logger: Any
    progress_bar: bool
    seed: int | None
    save_trainer_interval: int
    log_interval: int
    save_trainer_file: str | Path | None
    num_epochs: int
    async_collection: bool
    auto_log_optim_steps: bool
    replay_buffer: Any
    checkpoint: str | None
    checkpoint_rotation: CheckpointRotation | None
    checkpoint_metadata: Callable[[Trainer], Mapping[str, Any]] | None
    learner_backend: str
    hooks: Iterable[Any]
    evaluator: Any

    @classmethod
    def among(cls, arguments: Mapping[str, Any]) -> Settings:
        """Return those of some arguments that are settings."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls)})


class Assembled(NamedTuple):
    """The parts, and the assembly in which they are registered."""

    parts: Parts
    assembly: Assembly


def assemble(trainer: Trainer, settings: Settings, assembly: Assembly | None) -> Assembled:
    """Return the parts that a trainer runs, and where they are registered.

    Raises:
        ConfigError: an argument that cannot be used.
    """
    _check(settings)
    assembly = assembly or Assembly(_context(settings))
    context, register = assembly.context, assembly.register
    collector = settings.collector
    if not hasattr(collector, "collect"):
        collector = IterableCollector(collector, settings.async_collection)
    if settings.seed is not None:
        seed_all(collector.set_seed(settings.seed) if hasattr(collector, "set_seed") else settings.seed)
    hooks = LoopHooks(_hooks(settings, assembly))
    built = [*assembly.stateful.values(), context.parts.get("loss")]
    for name, part in _with_state(settings, collector).items():
        if not any(part is known for known in built):
            register(name, part)
    progress = register("progress", context.progress)
    writers = _writers(settings, assembly)
    store, evidence, schedule = _storage(settings)
    register("checkpoints", schedule)
    metrics = register("metrics", Metrics(Every(settings.log_interval), writers))
    evaluations = register("evaluations", Evaluations(context.run.folder))
    register("generators", GlobalGenerators())
    parts = Parts(
        run=context.run,
        progress=progress,
        model=context.parts.get("model", settings.loss_module),
        collector=collector,
        buffer=_buffer(settings, collector, hooks),
        learner=_learner(trainer, settings, assembly, hooks),
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


def _check(settings: Settings) -> None:
    counts = {"total_frames": settings.total_frames, "frame_skip": settings.frame_skip}
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name} = {value!r}: expected a positive number of frames")
    if settings.learner_backend != "local":
        raise ConfigError(f"learner_backend = {settings.learner_backend!r}: only 'local' is there")
    if settings.loss_module is not None and not callable(settings.loss_module):
        raise ConfigError(f"loss_module: a {type(settings.loss_module).__name__} cannot be called")
    if settings.checkpoint_rotation is not None and settings.save_trainer_file is not None:
        raise ConfigError("save_trainer_file and checkpoint_rotation both say where checkpoints go; give one of them")


def _context(settings: Settings) -> Context:
    return Context.alone("trainer", settings.seed or 0, settings.total_frames)


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
        from rlcore.stock.progress_bar import ProgressBar

        hooks.append(Hook("progress-bar", ProgressBar(ProgressBar.Config(), assembly.context)))
    if settings.auto_log_optim_steps:
        hooks.append(Hook("optim-steps", _OptimSteps()))
    return hooks


class _OptimSteps:
    """Logs the count of optimisation steps."""

    @hookimpl
    def post_steps_log(self, trainer: Trainer) -> dict[str, Any]:
        return {"optim_steps": Last(trainer.progress.updates)}


def _writers(settings: Settings, assembly: Assembly) -> list[LogWriter]:
    given = settings.logger
    loggers = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
    writers = []
    for number, logger in enumerate(loggers, start=1):
        name = type(logger).__name__ if len(loggers) == 1 else f"{type(logger).__name__}-{number}"
        writer = LogWriter(name, as_logger(logger))
        writer.start()
        writers.append(assembly.register(f"logger.{name}", writer))
    return writers


def _buffer(settings: Settings, collector: Any, hooks: LoopHooks) -> Any:
    if hasattr(settings.replay_buffer, "minibatches"):
        return settings.replay_buffer
    warmup_frames = int(getattr(getattr(collector, "source", collector), "init_random_frames", 0) or 0)
    return WholeBatches(
        settings.num_epochs,
        settings.optim_steps_per_batch,
        warmup_frames,
        lambda: hooks.used("process_optim_batch"),
    )


def _learner(trainer: Trainer, settings: Settings, assembly: Assembly, hooks: LoopHooks) -> ModuleLearner:
    def rates() -> dict[str, float]:
        optimizers = {
            name: getattr(part, "optimizer", part)
            for name, part in assembly.stateful.items()
            if name.partition(".")[0].startswith("optimizer")
        }
        found = {name: o.param_groups[0]["lr"] for name, o in optimizers.items() if hasattr(o, "param_groups")}
        return {"lr" if len(found) == 1 else f"lr/{name}": float(rate) for name, rate in found.items()}

    stepper = settings.optimization_stepper
    step = None if stepper is None else lambda minibatch: stepper.step(trainer, minibatch)
    return ModuleLearner(settings.loss_module, hooks, assembly.context.progress, step, rates)


def _facts(trainer: Trainer, settings: Settings, assembly: Assembly) -> Facts:
    metadata = settings.checkpoint_metadata
    return Facts(
        owners=assembly.owners,
        observers=observers(assembly.stateful),
        versions=versions(PluginHost()),
        domain=domain(assembly.context.device, torch.get_num_threads()),
        metadata=None if metadata is None else lambda: metadata(trainer),
    )


def _storage(settings: Settings) -> tuple[Store | None, Store | None, CheckpointSchedule]:
    rotation = settings.checkpoint_rotation
    if rotation is None and settings.save_trainer_file is not None:
        rotation = CheckpointRotation(settings.save_trainer_file)
    if rotation is None:  # the schedule has state, so that a trainer which saves nothing can load what others saved
        return None, None, CheckpointSchedule(Every(settings.save_trainer_interval), keep_best=False)
    folder = Path(rotation.directory)
    if folder.is_file():
        raise ConfigError(f"save_trainer_file: {folder} is a file; checkpoints are saved into a folder")
    name = _backend_name(settings.checkpoint)
    schedule = CheckpointSchedule(Every(settings.save_trainer_interval), rotation.keep_best)
    return _store(folder, name, rotation), _store(folder / EVIDENCE, name), schedule


def _store(folder: Path, name: str, rotation: CheckpointRotation | None = None) -> Store:
    provided, config = find_component(PluginHost(), "checkpointer", name, {})
    backend: Checkpointer = provided.build(config, Context.alone("trainer").for_component("checkpointer", name))
    if rotation is None:
        return Store(folder, backend, name)
    return Store(folder, backend, name, rotation.keep_last, rotation.keep_best)


def _backend_name(given: str | None) -> str:
    return given or os.environ.get(CKPT_BACKEND) or "torch"
