"""The parts of a trainer that are the same for a config and a script: the clocks, the metrics, saving, provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rlcore.assembly.assembly import Assembly
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.config.sections import versions
from rlcore.envs.spec_records import spec_record
from rlcore.hooks.points import LoopHooks
from rlcore.loggers.metrics import Metrics
from rlcore.loggers.writer import LogWriter
from rlcore.plugins.host import PluginHost
from rlcore.state.exactness import domain
from rlcore.state.generators import GlobalGenerators
from rlcore.state.sources import source_hashes
from rlcore.training.evaluations import Evaluations
from rlcore.training.parts import TrainerParts
from rlcore.training.schedule import SaveSchedule
from rlcore.training.stateful import in_order, observers
from rlcore.types import Buffer, Collector, Context, Evaluator, Learner
from rlcore.types.part import Part, with_defaults
from rlcore.types.progress import Every


class Storage(NamedTuple):
    """Where a run saves and when; a run without a store saves nothing.

    Attributes:
        store: where checkpoints go.
        fault_store: where batches go that were not finite.
        schedule: when a checkpoint is due. It has state, so that a trainer which saves nothing may have one, and load
            what others saved.
    """

    store: Store | None = None
    fault_store: Store | None = None
    schedule: SaveSchedule | None = None


def trainer_parts(
    assembly: Assembly,
    *,
    model: Any,
    collector: Collector,
    buffer: Buffer,
    learner: Learner,
    hooks: LoopHooks,
    evaluator: Evaluator | None,
    frame_skip: int,
    writers: list[LogWriter],
    log_interval: int | Mapping[str, int],
    storage: Storage,
    update_prefix: str | None = "train/",
) -> TrainerParts:
    """Return what a trainer runs; what every trainer has is made here, and registered for checkpoints.

    Args:
        assembly: the parts that are built and registered so far.
        model: what is trained.
        collector: from envs to batches.
        buffer: from batches to minibatches.
        learner: takes the updates.
        hooks: of the loop.
        evaluator: measures the policy; None where nothing does.
        frame_skip: frames per env step.
        writers: one per logger; they are registered already, since those of a config have owners.
        log_interval: between two rows of metrics, see `Every`.
        storage: where checkpoints go, and when.
        update_prefix: before the names of what an update returns; None to leave that out of the metrics.
    """
    context, register = assembly.context, assembly.register
    register("progress", context.progress)
    if storage.schedule is not None:
        register("checkpoints", storage.schedule)
    metrics = register("metrics", Metrics(Every(log_interval), writers, context.group))
    evaluations = register("evaluations", _evaluations(context))
    register("generators", GlobalGenerators())
    return TrainerParts(
        run=context.run,
        progress=context.progress,
        model=model,
        collector=collector,
        buffer=buffer,
        learner=learner,
        metrics=metrics,
        hooks=hooks,
        transforms=context.built.get("transforms", []),
        estimator=context.estimator,
        evaluator=evaluator,
        store=storage.store,
        fault_store=storage.fault_store,
        schedule=storage.schedule,
        frame_skip=frame_skip,
        update_prefix=update_prefix,
        heart=context.heart,
        group=context.group,
        stateful=in_order(assembly.stateful),
        evaluations=evaluations,
    )


def _evaluations(context: Context) -> Evaluations:
    """Return what keeps the evaluations of a run."""
    return Evaluations(context.run.folder, context.progress.clock, bool(context.built.get("policies")))


def provenance(assembly: Assembly, host: PluginHost, modules: Iterable[str], threads: int) -> Provenance:
    """Return what the checkpoints of a run say of where they come from.

    Args:
        assembly: with everything registered that takes part in checkpoints.
        host: the plugins that the run uses.
        modules: names of the modules that its code is written in, besides those of the plugins.
        threads: CPU threads of torch.
    """
    env = assembly.context.built.get("env")
    return Provenance(
        owners=assembly.owners,
        env={} if env is None else spec_record(env.spec),
        observers=observers(assembly.stateful),
        versions=versions(host),
        domain={**domain(assembly.context.device, threads), **source_hashes(host.modules(), modules)},
        data=_data_files(assembly.stateful),
    )


def _data_files(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return the checksums of the files that parts learn from, by path."""
    return {
        file: checksum for part in parts.values() for file, checksum in with_defaults(part, Part).data_files().items()
    }
