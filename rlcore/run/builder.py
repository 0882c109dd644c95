"""From a validated config to a trainer: the parts in order, each registered for checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from rlcore.assembly.assembly import Assembly
from rlcore.assembly.trainer_parts import Storage, provenance, trainer_parts
from rlcore.checkpoints.backend import Backend
from rlcore.checkpoints.provenance import Provenance
from rlcore.config.changes import config_hash, hooks_among, recorded
from rlcore.config.own_modules import named_modules
from rlcore.config.policies import policies_of
from rlcore.config.problems import BuildProblems
from rlcore.config.sections import Config, Section
from rlcore.errors import ConfigError
from rlcore.hooks.points import Hook
from rlcore.hooks.resolution import check_marks, marked
from rlcore.loggers.writer import LogWriter, close_all, open_writer
from rlcore.run.learning import NEEDS, Learning, OnePolicy
from rlcore.run.several import SeveralPolicies
from rlcore.run.trainer import ConfiguredTrainer
from rlcore.run_folder import folder as run_folder
from rlcore.state.sources import module_of, modules_of
from rlcore.training.parts import TrainerParts
from rlcore.training.saver import FAULTS
from rlcore.training.schedule import SaveSchedule
from rlcore.training.some_envs import check_some_envs, keepers_of
from rlcore.training.updates import check_source
from rlcore.types.context import Context
from rlcore.types.hook_parts import OfRanks
from rlcore.types.optional import offers
from rlcore.types.progress import Every


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
        learning = SeveralPolicies if policies_of(config.raw) else OnePolicy
        self._learning: Learning = learning(config, self._assembly, self._problems)
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
        try:
            self._problems.end()
            return ConfiguredTrainer(self._parts(), self._context.built)
        except BaseException:
            built = self._context.built
            if (opened := built.get("collector") or built.get("env")) is not None:
                opened.close()
            raise

    def _build(self, further_hooks: Iterable[Any]) -> None:
        """Build the parts in the order in which they need each other; one that fails is reported at the end."""
        parts, sections, learning = self._context.built, self._config.sections, self._learning
        if (env := self._config.one("env")) is not None:
            if self._context.group.rank:
                parts["first_env"] = self._context.group.rank * dict(env.config)["num_envs"]
            self._attempt("env", partial(self._assembly.env, env.provided, env.config, env.name))
        elif self._problems.has("env") and (buffer := self._config.one("buffer")) is not None:
            self._attempt("env", partial(self._spaces_of_data, buffer))
        for entry in sections["transform"]:
            build = partial(self._assembly.transform, entry.provided, entry.config, entry.name, entry.leaf)
            self._attempt("transform", build)
        learning.build_policies()
        self._build_one("collector")
        if self._problems.has("collector") and self._problems.has("buffer"):
            self._attempt("buffer", self._check_source)
        learning.build_buffers()
        hooks = self._hooks([*learning.part_hooks(), *further_hooks])
        if (resolved := self._attempt("hooks", lambda: learning.points(hooks))) is not None:
            parts["hooks"] = resolved
        learning.build_learners()
        if self._context.group.rank:
            parts["evaluator"] = None  # one evaluates, and its figures are the run's
        else:
            self._build_one("evaluator")
        learning.check()
        self._attempt("some envs", self._check_some_envs)

    def _check_some_envs(self) -> None:
        built = self._context.built
        keepers = keepers_of(self._context.transforms, built.get("buffer"), built["hooks"])
        check_some_envs(built["collector"], self._context.env_spec.num_envs, keepers)

    def _attempt(self, kind: str, build: Callable[[], Any]) -> Any:
        return self._problems.attempt(kind, build, NEEDS.get(kind, ()))

    def _build_one(self, kind: str) -> None:
        """Build the only part of a kind; one that fails is not there for others."""
        if not self._problems.has(kind):
            return
        section = self._config.one(kind)
        built = None if section is None else self._attempt(kind, partial(self._assembly.section, section, single=True))
        if self._problems.has(kind):
            self._context.built[kind] = built

    def _spaces_of_data(self, buffer: Section) -> None:
        """Take the spaces from the data of the buffer, in the place of an env; nothing can be evaluated then.

        Raises:
            ConfigError: the data do not say them, or something is to be evaluated.
        """
        if self._config.one("evaluator") is not None:
            raise ConfigError("[evaluator]: it plays episodes in the env; add a section [env], or leave this one out")
        giver: Any = buffer.provided.target()
        self._assembly.spaces(giver.spec_of(buffer.config, self._context.for_component("buffer", buffer.name)))

    def _check_source(self) -> None:
        """Refuse a run that collects nothing where something waits for it; the class speaks for the buffer."""
        section = self._config.one("buffer")
        assert section is not None
        check_source(section.provided.target(), str(section.provided), self._context)

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
        parts.policies = built.get("policies", ())
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

    def _hooks(self, further: Iterable[Any]) -> list[Hook]:
        hooks = []
        for section in self._config.sections["hook"]:
            if self._context.group.rank and _of_first_rank(section.provided.target()):
                continue
            self._attempt("hook", partial(_check_class, section))
            instance = self._attempt("hook", partial(self._assembly.section, section))
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
        every = settings.every or max(1, self._context.progress.total // 10)
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
