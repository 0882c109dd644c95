"""Builds the parts of a run in order, and registers everything that is built for checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from rlcore import run_folder
from rlcore.checkpoint import Facts, Store
from rlcore.components import Provided
from rlcore.context import Context
from rlcore.errors import ConfigError
from rlcore.evaluations import Evaluations
from rlcore.exactness import domain
from rlcore.hooks import Hook, LoopHooks
from rlcore.log_writer import LogWriter, open_writer
from rlcore.metrics import Metrics
from rlcore.progress import Every
from rlcore.random_state import GlobalGenerators
from rlcore.saver import EVIDENCE, CheckpointSchedule
from rlcore.sections import Config, Section
from rlcore.trainer import Parts, Trainer
from rlcore.transformed import TransformedEnv
from rlcore.types import Checkpointer, Env, Transform


class Builder:
    """Builds one run.

    Attributes:
        backend: writes and reads tensors.
        backend_name: its name.
    """

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._context = context
        self._stateful: dict[str, Any] = {}
        self._owners: dict[str, str] = {}
        section = self._required("checkpoint")
        self.backend: Checkpointer = section.provided.build(
            section.config, context.for_component("checkpointer", section.name)
        )
        self.backend_name = section.provided.component.name

    def trainer(self, further_hooks: Iterable[Any]) -> Trainer:
        """Build everything and return the trainer; `further_hooks` come after those of the config."""
        parts = self._context.parts
        self._build_env()
        parts["model"] = self._to_device(self._one("model"))
        loss = self._required("loss")
        self._check_required_parts(loss.provided.target(), loss)  # before it reaches for them
        parts["loss"] = self._to_device(self._one("loss"))
        self._owners.pop("loss"), self._stateful.pop("loss")  # its weights are the model's
        self._check_required_parts(parts["loss"], loss)  # what it requires may follow from its config
        if (estimator := self._config.one("estimator")) is not None:
            self._check_required_parts(estimator.provided.target(), estimator)
        parts["estimator"] = self._one("estimator")
        parts["optimizers"] = {s.name: self._section(s) for s in self._config.sections["optimizer"]}
        parts["schedulers"] = [self._section(s) for s in self._config.sections["scheduler"]]
        parts["collector"] = self._one("collector")
        parts["buffer"] = self._one("buffer")
        parts["hooks"] = LoopHooks(self._hooks(further_hooks))
        parts["learner"] = self._one("learner")
        parts["evaluator"] = self._one("evaluator")
        return Trainer(self._parts())

    def _parts(self) -> Parts:
        parts = self._context.parts
        progress = self._context.progress
        self._register("progress", progress)
        writers = self._writers()
        store, schedule = self._store()
        if schedule is not None:
            self._register("checkpoints", schedule)
        metrics = Metrics(Every(self._config.metrics.every), writers)
        evaluations = Evaluations()
        self._register("metrics", metrics)
        self._register("evaluations", evaluations)
        self._register("generators", GlobalGenerators())
        return Parts(
            run=self._context.run,
            progress=progress,
            model=parts["model"],
            collector=parts["collector"],
            buffer=parts["buffer"],
            learner=parts["learner"],
            metrics=metrics,
            hooks=parts["hooks"],
            transforms=parts["transforms"],
            estimator=parts["estimator"],
            evaluator=parts["evaluator"],
            store=store,
            evidence=None if store is None else Store(store.folder.parent / EVIDENCE, self.backend, self.backend_name),
            schedule=schedule,
            frame_skip=parts["env_spec"].frame_skip,
            heart=self._context.heart,
            stateful=self._in_order(),
            facts=self._facts(),
            evaluations=evaluations,
        )

    def _facts(self) -> Facts:
        return Facts(
            owners=self._owners,
            observers=tuple(name for name, part in self._stateful.items() if getattr(part, "observer", False)),
            versions=self._config.resolved()["versions"],
            domain=domain(self._context.device, self._config.run.threads),
        )

    def _in_order(self) -> dict[str, Any]:
        """Progress first, since others follow it; the learner after what it drives; the generators last."""
        late = ("learner", "generators")
        early = {"progress": self._stateful["progress"]}
        middle = {name: value for name, value in self._stateful.items() if name not in late}
        return {**early, **middle, **{name: self._stateful[name] for name in late if name in self._stateful}}

    def _build_env(self) -> None:
        section = self._required("env")
        parts = self._context.parts
        # one recipe for training and evaluation envs; `num_envs` is the only key that it knows
        parts["make_env"] = lambda num_envs: self._make_env(section, num_envs, "evaluation")
        parts["env"] = env = self._make_env(section, None, "")  # its state is saved by the collector
        parts["env_spec"] = env.spec
        transforms: list[Transform] = []
        parts["transforms"] = transforms
        for transform_section in self._config.sections["transform"]:
            transform = self._section(transform_section)
            fitting = self._make_env(section, 1, f"fit {transform_section.name}")
            try:
                seen = replace(fitting.spec, observation_space=parts["env_spec"].observation_space)
                transform.fit(TransformedEnv(fitting, transforms, seen))
            finally:
                fitting.close()
            space = transform.observation_space(parts["env_spec"].observation_space)
            parts["env_spec"] = replace(parts["env_spec"], observation_space=space)
            transforms.append(transform)

    def _make_env(self, section: Section, num_envs: int | None, purpose: str) -> Env:
        name = f"{section.name} {purpose}".strip()
        config = section.config if num_envs is None else section.config.model_copy(update={"num_envs": num_envs})
        return section.provided.build(config, self._context.for_component("env", name))  # type: ignore[no-any-return]

    def _required(self, name: str) -> Section:
        section = self._config.one(name)
        assert section is not None
        return section

    def _one(self, name: str) -> Any:
        section = self._config.one(name)
        return None if section is None else self._section(section, single=True)

    def _section(self, section: Section, single: bool = False) -> Any:
        kind = section.provided.component.kind
        self._context.heart.beats += 1
        built = section.provided.build(section.config, self._context.for_component(kind, section.name))
        return self._register(kind if single else f"{kind}.{section.name}", built, section)

    def _register(self, name: str, built: Any, section: Section | None = None) -> Any:
        """Register a built part for checkpoints; one without state is listed as such in the resume report."""
        self._stateful[name] = built
        self._owners[name] = _distribution(section.provided if section else None)
        return built

    def _to_device(self, module: Any) -> Any:
        return module.to(self._context.device) if isinstance(module, torch.nn.Module) else module

    def _check_required_parts(self, requiring: Any, section: Section) -> None:
        model = self._required("model")
        built = self._context.model.parts()
        missing = [part for part in getattr(requiring, "requires", ()) if part not in built]
        if missing:
            raise ConfigError(
                f"{section.provided} requires the model parts {', '.join(missing)}, which {model.provided} does not "
                f"build; it builds {', '.join(built)}"
            )

    def _hooks(self, further: Iterable[Any]) -> list[Hook]:
        hooks = []
        for section in self._config.sections["hook"]:
            instance = self._section(section)
            hooks.append(Hook(section.name, instance, str(section.provided.owner)))
        for number, instance in enumerate(further, start=1):
            name = f"{type(instance).__name__}-{number}"
            hooks.append(Hook(name, instance))
            self._register(f"hook.{name}", instance)
        return hooks

    def _writers(self) -> list[LogWriter]:
        if self._context.run.folder is None:
            return []
        writers = []
        for section in self._config.sections["logger"]:
            context = self._context.for_component("logger", section.name)
            build = partial(section.provided.build, section.config, context)
            writer = open_writer(section.name, build, section.required)
            self._register(f"logger.{section.name}", writer, section)
            writers.append(writer)
        return writers

    def _store(self) -> tuple[Store | None, CheckpointSchedule | None]:
        folder, settings = self._context.run.folder, self._config.checkpoint
        if folder is None:
            return None, None
        checkpoints = folder / run_folder.CHECKPOINTS
        store = Store(checkpoints, self.backend, self.backend_name, settings.keep_last, settings.keep_best)
        every = settings.every or max(1, self._context.run.total_frames // 10)
        return store, CheckpointSchedule(Every(every), settings.keep_best, settings.on_failure)


def _distribution(provided: Provided | None) -> str:
    return provided.owner.distribution if provided else "rlcore"
