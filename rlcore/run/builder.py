"""From a validated config to a trainer: the parts in order, each registered for checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from rlcore.checkpoints.backend import Backend
from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.retention import rules_of
from rlcore.config.changes import config_hash, hooks_among, recorded
from rlcore.config.own_modules import named_modules
from rlcore.config.policies import SEVERAL, policies_of
from rlcore.config.sections import Config, Section
from rlcore.errors import ConfigError
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.hooks.points_of_policies import JointHooks
from rlcore.hooks.resolution import check_marks, marked
from rlcore.loggers.writer import LogWriter, close_all, open_writer
from rlcore.plugins.known import lend
from rlcore.run.assembly import Assembly, Storage
from rlcore.run.policy import PolicyBuilder, SectionBuilder
from rlcore.run.problems import BuildProblems
from rlcore.run.ready import ConfiguredTrainer
from rlcore.run_folder import folder as run_folder
from rlcore.state.sources import module_of, modules_of
from rlcore.training.checks import check_some_envs, check_source, keepers_of
from rlcore.training.parts import TrainerParts
from rlcore.training.saver import FAULTS
from rlcore.training.schedule import SaveSchedule
from rlcore.types.context import Context
from rlcore.types.hook_parts import Hook as HookPart
from rlcore.types.part import with_defaults
from rlcore.types.progress import Every


class RunBuilder(SectionBuilder):
    """Builds one run.

    Attributes:
        backend: writes and reads checkpoints.
    """

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, Assembly(context), BuildProblems(config.raw.path, config.missing()))
        self._policies: list[PolicyBuilder] = []
        self._joint: Any = None  # of several policies
        section = config.one("checkpoint")
        if section is not None:
            checkpointer = self.attempt("checkpoint", partial(self._assembly.build, section))
            self.backend = Backend(checkpointer, section.provided.component.name)

    def trainer(self, further_hooks: Iterable[Any]) -> ConfiguredTrainer:
        """Build everything and return the trainer; `further_hooks` come after those of the config.

        Raises:
            ConfigProblems: several parts cannot be built. A part on which others depend keeps those from being tried.
        """
        self._build(further_hooks)
        try:
            self._problems.end()
            return ConfiguredTrainer(self._parts(), self.context.built)
        except BaseException:
            built = self.context.built
            if (opened := built.get("collector") or built.get("env")) is not None:
                opened.close()
            raise

    def _build(self, further_hooks: Iterable[Any]) -> None:
        """Build the parts in the order in which they need each other; one that fails is reported at the end."""
        parts = self.context.built
        self._build_env()
        for section in self._config.sections["transform"]:
            self.attempt("transform", partial(self._assembly.transform, section))
        self._share_out()
        for policy in self._policies:
            policy.build_model()
        self._join("model")
        self._join("estimator")
        self.build_one("collector")
        if self._problems.has("collector") and self._problems.has("buffer"):
            self.attempt("buffer", self._check_source)
        if self._joint is None or self.attempt("buffer", self._joint.share_out_batches) is not None:
            for policy in self._policies:
                policy.build_one("buffer")
            self._join("buffer")
        brought = [hook for policy in self._policies for hook in policy.part_hooks()]
        hooks = self._hooks([*brought, *further_hooks])
        points = LoopHooks if self._joint is None else self._points_of_policies
        if (resolved := self.attempt("hooks", lambda: points(hooks))) is not None:
            parts["hooks"] = resolved
        for policy in self._policies:
            policy.build_learner()
        self._join("learner")
        if self.context.group.rank:
            parts["evaluator"] = None  # one evaluates, and its figures are the run's
        else:
            self.build_one("evaluator")
        for policy in self._policies:
            policy.check()
        self.attempt("some envs", self._check_some_envs)

    def _build_env(self) -> None:
        """Build the envs, or take the spaces of the data that are there in their place."""
        if (env := self._config.one("env")) is not None:
            if self.context.group.rank:
                self.context.built["first_env"] = self.context.group.rank * dict(env.config)["num_envs"]
            self.attempt("env", partial(self._assembly.env, env))
        elif self._problems.has("env") and (buffer := self._config.one("buffer")) is not None:
            self.attempt("env", partial(self._spaces_of_data, buffer))

    def _share_out(self) -> None:
        """Find out which policy acts for whom; one policy acts for all."""
        if policies_of(self._config.raw):
            self._joint = self.attempt("model", self._joint_parts)
            self._policies = [] if self._joint is None else list(self._joint.policies.values())
        else:
            self._policies = [PolicyBuilder(self._config, self._assembly, self._problems)]

    def _joint_parts(self) -> Any:
        def builder(name: str, assembly: Assembly) -> PolicyBuilder:
            return PolicyBuilder(self._config.of_policy(name), assembly, self._problems, name)

        joint_parts = lend("rlcore.run", "JointParts", SEVERAL)
        return joint_parts(self._config, self._assembly, builder)

    def _points_of_policies(self, hooks: list[Hook]) -> LoopHooks:
        """Return the points of the run; hooks of a loss or buffer are called for the updates of its policy alone."""
        joint = JointHooks(hooks, [policy.part_hooks() for policy in self._policies])
        for number, policy in enumerate(self._policies):
            policy.context.built["hooks"] = joint.of(number)
        return joint

    def _join(self, kind: str) -> None:
        """Put the joint part of a kind in its place, where every one of several policies has its own."""
        if self._joint is not None:
            self.build_one(kind, getattr(self._joint, kind))

    def _check_some_envs(self) -> None:
        built = self.context.built
        keepers = keepers_of(self.context.transforms, built.get("buffer"), built["hooks"])
        check_some_envs(built["collector"], self.context.env_spec.num_envs, keepers)

    def _spaces_of_data(self, buffer: Section) -> None:
        """Take the spaces from the data of the buffer, in the place of an env; nothing can be evaluated then.

        Raises:
            ConfigError: the data do not say them, or something is to be evaluated.
        """
        if self._config.one("evaluator") is not None:
            raise ConfigError("[evaluator]: it plays episodes in the env; add a section [env], or leave this one out")
        giver: Any = buffer.provided.target()
        self._assembly.spaces(giver.spec_of(buffer.config, self.context.for_component("buffer", buffer.name)))

    def _check_source(self) -> None:
        """Refuse a run that collects nothing where something waits for it; the class speaks for the buffer."""
        section = self._required("buffer")
        check_source(section.provided.target(), str(section.provided), self.context)

    def _parts(self) -> TrainerParts:
        built = self.context.built
        parts = self._assembly.trainer_parts(
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
        config, resolved = self._config, self.context.run.resolved_config
        common = self._assembly.provenance(config.host, list(self._modules()), config.run.threads)
        digest = config_hash(resolved, config.free_keys(), hooks_among(common.observers))
        return replace(common, config=recorded(resolved), config_hash=digest, versions=resolved["versions"])

    def _modules(self) -> Iterator[str]:
        """Yield the names of the modules that components, env classes and given hooks come from."""
        for kind, sections in self._config.sections.items():
            for section in sections if kind != "logger" else ():
                yield module_of(section.provided.component.target)
        yield from modules_of(self.context.built["env"])
        yield from named_modules(self._config.raw)
        for hook in self.context.built["hooks"].hooks:
            yield type(hook.instance).__module__

    def _hooks(self, further: Iterable[Any]) -> list[Hook]:
        hooks = []
        for section in self._config.sections["hook"]:
            if self.context.group.rank and with_defaults(section.provided.target(), HookPart).ranks == "first":
                continue
            self.attempt("hook", partial(_check_class, section))
            instance = self.attempt("hook", partial(self._assembly.part, section))
            hook = Hook(section.name, instance, str(section.provided.owner))
            if instance is not None and self.attempt("hook", partial(_checked, hook)):
                hooks.append(hook)
        for number, instance in enumerate(further, start=1):
            name = f"{type(instance).__name__}-{number}"
            hooks.append(hook := Hook(name, instance))
            if not hook.internal:
                self._assembly.register(f"hook.{name}", instance)
        return hooks

    def _writers(self) -> list[LogWriter]:
        if self.context.run.folder is None:
            return []
        writers: list[LogWriter] = []
        try:
            for section in self._config.sections["logger"]:
                writers.append(open_writer(section.name, partial(self._assembly.build, section), section.required))
                name = f"logger.{section.name}"
                self._assembly.register(name, writers[-1], section.provided.owner.distribution)
        except BaseException:
            close_all(writers)
            raise
        return writers

    def _storage(self) -> Storage:
        folder, settings = self.context.run.folder, self._config.checkpoint
        if folder is None:
            return Storage()
        checkpoints, check_place = folder / run_folder.CHECKPOINTS, run_folder.Presence(folder).check
        every = settings.every or max(1, self.context.progress.total // 10)
        return Storage(
            self.backend.store(checkpoints, rules_of(settings), check_place),
            self.backend.store(folder / FAULTS),
            SaveSchedule(Every(every), settings.keep_best, settings.on_failure, settings.in_background),
        )


def _checked(hook: Hook) -> Hook:
    check_marks(hook)
    return hook


def _check_class(section: Section) -> None:
    """Refuse a hook whose class marks what does not fit, also where it cannot be built."""
    target = section.provided.target()
    if isinstance(target, type) and marked(target):
        check_marks(Hook(section.name, target, str(section.provided.owner)))
