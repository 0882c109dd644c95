"""Building components one after another, each seeing those before it, and registering what has state for checkpoints.

In which order, and from which keys, is up to the callers: `builder.py` for a config, `saved_parts.py` for a checkpoint,
`scripts/factory.py` for a script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import reduce
from itertools import takewhile
from typing import Any, Final, NamedTuple

import torch

from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.config.reading import Section
from rlcore.config.sections import find_component, versions
from rlcore.envs.pass_through import check_observes
from rlcore.envs.spec_env import NotSteppableError, SpecEnv
from rlcore.envs.spec_records import spec_record
from rlcore.envs.transformed import TransformedEnv, transformed_spec
from rlcore.errors import ConfigError
from rlcore.hooks.points import LoopHooks
from rlcore.loggers.metrics import Metrics
from rlcore.loggers.writer import LogWriter
from rlcore.plugins.host import PluginHost
from rlcore.plugins.known import lend
from rlcore.plugins.registry import Provided
from rlcore.run.env_maker import EnvMaker
from rlcore.state.exactness import domain
from rlcore.state.generators import GlobalGenerators
from rlcore.state.sources import source_hashes
from rlcore.training.carried import in_order, observers
from rlcore.training.evaluations import Evaluations
from rlcore.training.parts import TrainerParts
from rlcore.training.schedule import SaveSchedule
from rlcore.types import Buffer, Collector, Env, EnvSpec, Evaluator, Learner, Stateful, Transform
from rlcore.types.context import Context
from rlcore.types.learning import Estimator, PacedOptimizer
from rlcore.types.optional import offers
from rlcore.types.part import Part, with_defaults
from rlcore.types.progress import Every

# the kinds that may use parts of the model, as a critic
_USES_MODEL_PARTS: Final = ("loss", "estimator")


def section_of(host: PluginHost, kind: str, use: str, keys: dict[str, Any], **common: Any) -> Section:
    """Return a section that no config has; raises like `find_component`.

    Args:
        host: imports the plugin of the component.
        kind: of the component.
        use: names it.
        keys: of the component.
        common: `name`, by default that of the component, and what else a `Section` has.
    """
    provided, config = find_component(host, kind, use, keys)
    return Section(kind, common.pop("name", provided.component.name), provided, config, **common)


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


class Assembly:
    """The parts of one run, as far as they are built.

    Attributes:
        context: what the parts see; `context.built` holds them by kind.
        stateful: everything that takes part in checkpoints, by name.
        owners: the distribution of each, by name.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.stateful: dict[str, Any] = {}
        self.owners: dict[str, str] = {}
        self._model = "the model"

    def of_policy(self, spec: EnvSpec) -> Assembly:
        """Return the assembly of one of several policies: it registers here, and sees `spec` as that of the envs."""
        own = copy(self)
        own.context = replace(self.context, parts={**self.context.built, "env_spec": spec})
        return own

    def build(self, section: Section, **keys: Any) -> Any:
        """Build the component of a section, with further `keys`; it takes no part in checkpoints.

        Raises:
            ConfigError: a loss or an estimator uses a part that the model lacks.
        """
        self.context.heart.beats += 1
        provided, config = section.provided, section.config.model_copy(update=keys)
        kind = provided.component.kind
        if kind in _USES_MODEL_PARTS:
            self._check_model_parts(provided.target(), provided)  # before it reaches for them
        learning = torch.is_grad_enabled()
        try:
            built = provided.build(config, self.context.for_component(kind, section.name))
        finally:
            _check_torch(provided, learning)
        if kind in _USES_MODEL_PARTS:
            self._check_model_parts(built, provided)  # what it requires may follow from its config
        if kind == "model":
            self._model = str(provided)
        every = with_defaults(config, PacedOptimizer).every
        if kind == "optimizer" and with_defaults(built, PacedOptimizer).every == 1 != every:
            built.every = every  # of a class that does not know the key, which every section of optimizers has
        return built.to(self.context.device) if isinstance(built, torch.nn.Module) else built

    def part(self, section: Section, single: bool = False, **keys: Any) -> Any:
        """Build the component of a section, and register it, but for a loss: its weights are those of the model.

        Args:
            section: of the component.
            single: whether it is registered under its kind, and not as `kind.name`.
            keys: that the section has besides.
        """
        kind, built = section.provided.component.kind, self.build(section, **keys)
        if kind == "loss":
            return built
        if isinstance(built, torch.nn.Module):
            built.eval()  # whoever acts uses it so; a learner puts layers into training mode for the losses
        return self.register(kind if single else f"{kind}.{section.name}", built, section.provided.owner.distribution)

    def register(self, name: str, built: Any, distribution: str = "rlcore") -> Any:
        """Register a part for checkpoints; one without state is listed as such in the resume report."""
        self.stateful[name] = built
        self.owners[name] = distribution
        return built

    def env(self, section: Section, **keys: Any) -> Env:
        """Build the training envs, with further `keys`, and keep the recipe for those of evaluation and fitting."""
        parts, config = self.context.built, section.config.model_copy(update=keys)
        parts["make_env_for"] = make_env = EnvMaker(section.provided, config, section.name, self.context)
        parts["make_env"] = lambda num_envs, **keys: make_env("evaluation", num_envs=num_envs, **keys)
        first = self.context.first_env
        env = make_env(f"from {first}" if first else "", first)  # its state is saved by the collector
        self._begin(env)
        return env

    def spaces(self, spec: EnvSpec) -> None:
        """Take the spec of the envs where none are made."""
        env = SpecEnv(spec)
        self.context.built["make_env_for"] = lambda *_, **__: env
        self._begin(env)

    def _begin(self, env: Env) -> None:
        self.context.built.update(env=env, env_spec=env.spec, transforms=[], make_fitting_env=self._fitting_env)

    def transform(self, section: Section, restored: bool = False, **keys: Any) -> Transform:
        """Build a transform, fit it on an env as the transforms before it leave it, and put it behind them.

        Args:
            section: of the transform.
            restored: whether its state is restored afterwards, so that it can do without the frames of an env.
            keys: that the section has besides.

        Raises:
            ConfigError: it wants frames where there are none, and has no state.
        """
        parts, transform = self.context.built, self._transform(section, **keys)
        fitting = self._seen_before(transform, section.name)
        try:
            transform.fit(fitting)
        except NotSteppableError:
            if not restored:
                raise
            if not offers(transform, Stateful):
                raise ConfigError(
                    f"{section.provided} takes frames of the env before training and does not save what it learns from "
                    "them (it has no state_dict), so there is no agent with it"
                ) from None
        finally:
            fitting.close()
        parts["env_spec"] = transformed_spec(parts["env_spec"], transform)
        parts["transforms"].append(transform)
        return transform

    def _transform(self, section: Section, **keys: Any) -> Transform:
        """Build a transform, which sees the spec of the leaf that it changes."""
        parts, leaf, name = self.context.built, section.leaf, section.name
        spec: EnvSpec = parts["env_spec"]
        on_leaf = None if leaf is None else lend("rlcore.envs", "OnLeaf", "[[transform]] leaf")
        if on_leaf is not None:
            parts["env_spec"] = on_leaf.spec(spec, name, leaf)
        try:
            transform: Transform = self.part(section, **keys)
        finally:
            parts["env_spec"] = spec
        check_observes(transform, spec, name, leaf)
        return transform if on_leaf is None else on_leaf(transform, spec.observation_space, leaf)

    def _fitting_env(self, transform: Transform, name: str) -> Env:
        """Return one env as the transforms before `transform` leave it, or as all do where it is not among them."""
        around = (other for other in self.context.transforms if with_defaults(other, Transform).inner is transform)
        whole = next(around, transform)
        return with_defaults(whole, Transform).fitting_env(self._seen_before(whole, name))

    def _seen_before(self, transform: Transform, name: str) -> SpecEnv:
        """Return one env, seen through the transforms before `transform`, or through all where it is not among them.

        The env is made when its first frame is wanted, as one may exist only once.
        """
        parts = self.context.built
        transforms: list[Transform] = list(takewhile(lambda fitted: fitted is not transform, parts["transforms"]))
        spec = reduce(transformed_spec, transforms, replace(parts["env"].spec, num_envs=1))
        return SpecEnv(spec, lambda: TransformedEnv(parts["make_env_for"](f"fit {name}", num_envs=1), transforms))

    def _check_model_parts(self, requiring: Any, provided: Provided) -> None:
        """Refuse a model that lacks a part which `requiring` uses.

        Raises:
            ConfigError: names the missing parts, whose they would be and who needs them.
        """
        built = self.context.model.parts()
        missing = [part for part in with_defaults(requiring, Estimator).requires if part not in built]
        if missing:
            raise ConfigError(
                f"{provided} requires the model parts {', '.join(missing)}, which {self._model} does not build; it "
                f"builds {', '.join(built)}"
            )

    def trainer_parts(
        self,
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
        context, register = self.context, self.register
        several = bool(context.built.get("policies"))
        register("progress", context.progress)
        if storage.schedule is not None:
            register("checkpoints", storage.schedule)
        metrics = register("metrics", Metrics(Every(log_interval), writers, context.group))
        evaluations = register("evaluations", Evaluations(context.run.folder, context.progress.clock, several))
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
            stateful=in_order(self.stateful),
            evaluations=evaluations,
        )

    def provenance(self, host: PluginHost, modules: Iterable[str], threads: int) -> Provenance:
        """Return what the checkpoints of a run say of where they come from.

        Args:
            host: the plugins that the run uses.
            modules: names of the modules that its code is written in, besides those of the plugins.
            threads: CPU threads of torch.
        """
        env = self.context.built.get("env")
        return Provenance(
            owners=self.owners,
            env={} if env is None else spec_record(env.spec),
            observers=observers(self.stateful),
            versions=versions(host),
            domain={**domain(self.context.device, threads), **source_hashes(host.modules(), modules)},
            data=_data_files(self.stateful),
        )


def hooks_of(part: object) -> list[Any]:
    """Return the hooks that a loss or a buffer brings; none of one that brings none, or that is not built."""
    return list(with_defaults(part, Part).hooks)


def _check_torch(provided: Provided, learning: bool) -> None:
    """Refuse to go on where a module changed what torch makes of every tensor.

    Args:
        provided: the component that was built.
        learning: whether gradients were enabled before.

    Raises:
        ConfigError: says which call to leave out.
    """
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    calls = [] if dtype == torch.float32 else [f"torch.set_default_dtype({dtype})"]
    calls += [] if device.type == "cpu" else [f"torch.set_default_device({str(device)!r})"]
    calls += [] if torch.is_grad_enabled() or not learning else ["torch.set_grad_enabled(False)"]
    if calls:
        raise ConfigError(
            f"while {provided} was built, or before, a module or the script called {', '.join(calls)}, which changes "
            "all of torch; say dtype, device and gradients for your own tensors alone: torch.zeros(3, dtype=...)"
        )


def _data_files(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return the checksums of the files that parts learn from, by path."""
    return {
        file: checksum for part in parts.values() for file, checksum in with_defaults(part, Part).data_files().items()
    }
