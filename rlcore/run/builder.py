"""From a validated config to a trainer: the parts in order, each registered for checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from rlcore.assembly.assembly import Assembly, hooks_of, to_device
from rlcore.assembly.trainer_parts import Storage, provenance, trainer_parts
from rlcore.checkpoints.backend import Backend
from rlcore.checkpoints.provenance import Provenance
from rlcore.config.changes import config_hash, hooks_among, recorded
from rlcore.config.own_modules import named_modules
from rlcore.config.problems import BuildProblems
from rlcore.config.sections import Config, Section
from rlcore.config.validation import checked
from rlcore.errors import ConfigError
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.hooks.resolution import check_marks, marked
from rlcore.loggers.writer import LogWriter, close_all, open_writer
from rlcore.run.trainer import ConfiguredTrainer
from rlcore.run_folder import folder as run_folder
from rlcore.state.sources import module_of, modules_of
from rlcore.training.entries import check_entries, writers_of
from rlcore.training.memory import check_memory
from rlcore.training.parts import TrainerParts
from rlcore.training.saver import FAULTS
from rlcore.training.schedule import SaveSchedule
from rlcore.training.updates import check_paces, warn_of_no_updates
from rlcore.types.context import Context
from rlcore.types.hook_parts import OfRanks
from rlcore.types.optional import Schedulable, offers
from rlcore.types.progress import Every, Progress

# the kinds without which a part of a kind cannot be built
_NEEDS: Final = {
    "transform": ("env", "transform"),
    "model": ("env", "transform"),
    "loss": ("model",),
    "estimator": ("model",),
    "optimizer": ("model", "loss"),
    "collector": ("env", "transform", "model"),
    "learner": ("model", "loss", "optimizer", "scheduler", "hooks"),
    "paces": ("env", "transform", "model", "optimizer", "collector", "buffer"),
    "ranges": ("model", "loss", "buffer", "scheduler", "learner"),
    "evaluator": ("env", "transform", "model"),
    "entries": ("model", "loss", "hook", "hooks"),
    "memory": ("model", "loss", "estimator", "buffer"),
}


class Builder:
    """Builds one run.

    Attributes:
        backend: writes and reads checkpoints.
    """

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._context = context
        self._assembly = Assembly(context)
        self._problems = BuildProblems(config.raw.path, config.missing())
        section = config.one("checkpoint")
        if section is not None:
            build = partial(self._assembly.build, section.provided, section.config, section.name)
            self.backend = Backend(self._attempt("checkpoint", build), section.provided.component.name)

    def trainer(self, further_hooks: Iterable[Any]) -> ConfiguredTrainer:
        """Build everything and return the trainer; `further_hooks` come after those of the config.

        Raises:
            ConfigProblems: several parts cannot be built. A part on which others depend keeps those from being tried.
        """
        self._build(further_hooks)
        self._problems.end()
        return ConfiguredTrainer(self._parts(), self._assembly)

    def _build(self, further_hooks: Iterable[Any]) -> None:
        """Build the parts in the order in which they need each other; one that fails is reported at the end."""
        parts, sections = self._context.built, self._config.sections
        if (env := self._config.one("env")) is not None:
            if self._context.group.rank:
                parts["first_env"] = self._context.group.rank * dict(env.config)["num_envs"]
            self._attempt("env", partial(self._assembly.env, env.provided, env.config, env.name))
        for entry in sections["transform"]:
            build = partial(self._assembly.transform, entry.provided, entry.config, entry.name, entry.leaf)
            self._attempt("transform", build)
        self._build_one("model")
        self._build_one("loss", self._loss)
        self._build_one("estimator", self._estimator)
        for kind in ("optimizer", "scheduler"):
            built = {entry.name: self._attempt(kind, partial(self._section, entry)) for entry in sections[kind]}
            if self._problems.has(kind):
                parts[f"{kind}s"] = built if kind == "optimizer" else list(built.values())
        self._build_one("collector")
        self._build_one("buffer")
        hooks = self._hooks([*hooks_of(parts.get("loss")), *further_hooks])
        if (resolved := self._attempt("hooks", lambda: LoopHooks(hooks))) is not None:
            parts["hooks"] = resolved
        self._build_one("learner")
        self._attempt("ranges", self._check_ranges)
        self._attempt("paces", self._check_updates)
        if self._context.group.rank:
            parts["evaluator"] = None  # one evaluates, and its figures are the run's
        else:
            self._build_one("evaluator")
        self._attempt("entries", self._check_entries)
        self._attempt("memory", self._check_memory)

    def _attempt(self, kind: str, build: Callable[[], Any]) -> Any:
        return self._problems.attempt(kind, build, _NEEDS.get(kind, ()))

    def _build_one(self, kind: str, build: Callable[[], Any] | None = None) -> None:
        """Build the only part of a kind; one that fails is not there for others."""
        if not self._problems.has(kind):
            return
        built = self._attempt(kind, build or partial(self._one, kind))
        if self._problems.has(kind):
            self._context.built[kind] = built

    def _estimator(self) -> Any:
        if (section := self._config.one("estimator")) is not None:
            self._check_model_parts(section.provided.target(), section)
        return self._one("estimator")

    def _loss(self) -> Any:
        """Build the loss; its weights are the model's, so it is not registered for checkpoints."""
        section = self._required("loss")
        self._check_model_parts(section.provided.target(), section)  # before it reaches for them
        loss = to_device(self._assembly.build(section.provided, section.config, section.name), self._context.device)
        self._check_model_parts(loss, section)  # what it requires may follow from its config
        return loss

    def _check_entries(self) -> None:
        """Hold what the loss reads against who writes it; the class speaks for a part that cannot be built."""
        parts = self._context.built
        kinds = ("collector", "buffer", "estimator")
        sections = {kind: self._config.one(kind) for kind in kinds}
        built_or_class = {
            kind: parts[kind] if kind in parts else section and section.provided.target()
            for kind, section in sections.items()
        }
        writers = writers_of(parts, built_or_class["collector"], built_or_class["buffer"], parts["hooks"])
        if sections["estimator"] is not None or self._problems.has("estimator"):  # or it did not fit its schema
            check_entries(parts["loss"], str(self._required("loss").provided), writers, built_or_class["estimator"])

    def _check_memory(self) -> None:
        built = self._context.built
        check_memory(built.get("model"), {kind: built.get(kind) for kind in ("loss", "estimator", "buffer")})

    def _check_ranges(self) -> None:
        """Refuse a schedule that takes a key of a part out of its range, of which zero is no matter."""
        end = Progress(1, frames=1)
        for scheduler in self._context.schedulers:
            kind, _, number = scheduler.target.partition(".")
            declares = offers(self._context.built.get(kind), Schedulable)
            section = self._config.one(kind) if declares else None
            values = {} if section is None else section.config.model_dump()
            given = None if section is None else values.get(number)
            if section is None or given is None or not (value := scheduler.value(given, end)):
                continue
            problems: list[str] = []
            owner = f"{section.provided}, at the end of the schedule of {scheduler.target!r}"
            if checked(type(section.config), {**values, number: value}, kind, owner, problems) is None:
                raise ConfigError("; ".join(problems))

    def _check_updates(self) -> None:
        check_paces(self._context.optimizers, self._context)
        warn_of_no_updates(self._context)

    def _parts(self) -> TrainerParts:
        built = self._context.built
        parts = trainer_parts(
            self._assembly,
            model=built["model"],
            collector=built["collector"],
            buffer=built["buffer"],
            learner=built["learner"],
            hooks=built["hooks"],
            evaluator=built["evaluator"],
            frame_skip=built["env_spec"].frame_skip,
            writers=self._writers(),
            log_interval=self._config.metrics.every,
            storage=self._storage(),
        )
        parts.provenance = self._provenance()
        return parts

    def _provenance(self) -> Provenance:
        config, resolved = self._config, self._context.run.resolved_config
        common = provenance(self._assembly, config.host, self._modules(), config.run.threads)
        digest = config_hash(resolved, config.free_keys(), hooks_among(common.observers))
        return replace(common, config=recorded(resolved), config_hash=digest, versions=resolved["versions"])

    def _modules(self) -> Iterator[str]:
        """Yield the names of the modules that components, env classes and given hooks come from."""
        for kind, sections in self._config.sections.items():
            for section in sections if kind != "logger" else ():
                yield module_of(section.provided.component.target)
        yield from modules_of(self._context.built["env"])
        yield from named_modules(self._config.raw)
        for hook in self._context.built["hooks"].hooks:
            yield type(hook.instance).__module__

    def _required(self, name: str) -> Section:
        section = self._config.one(name)
        assert section is not None
        return section

    def _one(self, name: str) -> Any:
        section = self._config.one(name)
        return None if section is None else self._section(section, single=True)

    def _section(self, section: Section, single: bool = False) -> Any:
        return self._assembly.part(section.provided, section.config, section.name, single)

    def _check_model_parts(self, requiring: Any, section: Section) -> None:
        self._assembly.check_model_parts(requiring, section.provided, str(self._required("model").provided))

    def _hooks(self, further: Iterable[Any]) -> list[Hook]:
        hooks = []
        for section in self._config.sections["hook"]:
            if self._context.group.rank and _of_first_rank(section.provided.target()):
                continue
            self._attempt("hook", partial(_check_class, section))
            instance = self._attempt("hook", partial(self._section, section))
            hook = Hook(section.name, instance, str(section.provided.owner))
            if instance is not None and self._attempt("hook", partial(_checked, hook)):
                hooks.append(hook)
        for number, instance in enumerate(further, start=1):
            name = f"{type(instance).__name__}-{number}"
            hooks.append(hook := Hook(name, instance))
            if not hook.internal:
                self._assembly.register(f"hook.{name}", instance)
        return hooks

    def _writers(self) -> list[LogWriter]:
        if self._context.run.folder is None:
            return []
        writers: list[LogWriter] = []
        try:
            for section in self._config.sections["logger"]:
                build = partial(self._assembly.build, section.provided, section.config, section.name)
                writers.append(open_writer(section.name, build, section.required))
                name = f"logger.{section.name}"
                self._assembly.register(name, writers[-1], section.provided.owner.distribution)
        except BaseException:
            close_all(writers)
            raise
        return writers

    def _storage(self) -> Storage:
        folder, settings = self._context.run.folder, self._config.checkpoint
        if folder is None:
            return Storage()
        checkpoints, check_place = folder / run_folder.CHECKPOINTS, run_folder.Presence(folder).check
        every = settings.every or max(1, self._context.run.total_frames // 10)
        return Storage(
            self.backend.store(checkpoints, settings.keep_last, settings.keep_best, check_place),
            self.backend.store(folder / FAULTS),
            SaveSchedule(Every(every), settings.keep_best, settings.on_failure, settings.in_background),
        )


def _of_first_rank(hook: Any) -> bool:
    return offers(hook, OfRanks) and hook.ranks == "first"


def _checked(hook: Hook) -> Hook:
    check_marks(hook)
    return hook


def _check_class(section: Section) -> None:
    """Refuse a hook whose class marks what does not fit, also where it cannot be built."""
    target = section.provided.target()
    if isinstance(target, type) and marked(target):
        check_marks(Hook(section.name, target, str(section.provided.owner)))
