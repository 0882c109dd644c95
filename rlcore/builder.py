"""From a validated config to a trainer: the parts in order, each registered for checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from rlcore import run_folder
from rlcore.assembly import Assembly, in_order, observers, to_device
from rlcore.checkpoint import Facts, Store
from rlcore.config_changes import config_hash, hooks_among, recorded
from rlcore.context import Context
from rlcore.entries import check_entries, writers_of
from rlcore.evaluations import Evaluations
from rlcore.exactness import domain
from rlcore.hooks import Hook, LoopHooks
from rlcore.log_writer import LogWriter, open_writer
from rlcore.metrics import Metrics
from rlcore.parts import Parts
from rlcore.progress import Every
from rlcore.random_state import GlobalGenerators
from rlcore.saver import EVIDENCE, CheckpointSchedule
from rlcore.sections import Config, Section
from rlcore.sources import module_of, source_hashes
from rlcore.trainer import Trainer
from rlcore.types import Checkpointer


class Builder:
    """Builds one run.

    Attributes:
        backend: writes and reads tensors.
        backend_name: its name.
    """

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._context = context
        self._assembly = Assembly(context)
        section = self._required("checkpoint")
        self.backend: Checkpointer = self._assembly.build(section.provided, section.config, section.name)
        self.backend_name = section.provided.component.name

    def trainer(self, further_hooks: Iterable[Any]) -> Trainer:
        """Build everything and return the trainer; `further_hooks` come after those of the config."""
        parts = self._context.parts
        env = self._required("env")
        self._assembly.env(env.provided, env.config, env.name)
        for section in self._config.sections["transform"]:
            self._assembly.transform(section.provided, section.config, section.name)
        parts["model"] = self._one("model")
        parts["loss"] = self._loss()
        if (estimator := self._config.one("estimator")) is not None:
            self._check_model_parts(estimator.provided.target(), estimator)
        parts["estimator"] = self._one("estimator")
        parts["optimizers"] = {s.name: self._section(s) for s in self._config.sections["optimizer"]}
        parts["schedulers"] = [self._section(s) for s in self._config.sections["scheduler"]]
        parts["collector"] = self._one("collector")
        parts["buffer"] = self._one("buffer")
        parts["hooks"] = LoopHooks(self._hooks(further_hooks))
        parts["learner"] = self._one("learner")
        parts["evaluator"] = self._one("evaluator")
        self._check_entries()
        return Trainer.of(self._parts(), self._assembly)

    def _loss(self) -> Any:
        """Build the loss; its weights are the model's, so it is not registered for checkpoints."""
        section = self._required("loss")
        self._check_model_parts(section.provided.target(), section)  # before it reaches for them
        loss = to_device(self._assembly.build(section.provided, section.config, section.name), self._context.device)
        self._check_model_parts(loss, section)  # what it requires may follow from its config
        return loss

    def _check_entries(self) -> None:
        parts = self._context.parts
        writers = writers_of(parts, parts["collector"], parts["buffer"], parts["hooks"])
        check_entries(parts["loss"], str(self._required("loss").provided), writers, parts["estimator"])

    def _parts(self) -> Parts:
        parts = self._context.parts
        register = self._assembly.register
        progress = register("progress", self._context.progress)
        writers = self._writers()
        store, schedule = self._store()
        if schedule is not None:
            register("checkpoints", schedule)
        metrics = register("metrics", Metrics(Every(self._config.metrics.every), writers))
        evaluations = register("evaluations", Evaluations(self._context.run.folder))
        register("generators", GlobalGenerators())
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
            stateful=in_order(self._assembly.stateful),
            facts=self._facts(),
            evaluations=evaluations,
        )

    def _facts(self) -> Facts:
        config, resolved = self._config, self._context.run.resolved_config
        watching = observers(self._assembly.stateful)
        return Facts(
            owners=self._assembly.owners,
            observers=watching,
            config=recorded(resolved),
            config_hash=config_hash(resolved, config.free_keys(), hooks_among(watching)),
            versions=resolved["versions"],
            domain={
                **domain(self._context.device, self._config.run.threads),
                **source_hashes(self._config.host.modules(), self._modules()),
            },
        )

    def _modules(self) -> Iterator[str]:
        """Yield the names of the modules that components, env classes and given hooks come from."""
        for kind, sections in self._config.sections.items():
            for section in sections if kind != "logger" else ():
                yield module_of(section.provided.component.target)
        env = self._context.parts["env"]
        yield from env.modules() if hasattr(env, "modules") else ()
        yield type(env).__module__
        for hook in self._context.parts["hooks"].hooks:
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
            instance = self._section(section)
            hooks.append(Hook(section.name, instance, str(section.provided.owner)))
        for number, instance in enumerate(further, start=1):
            name = f"{type(instance).__name__}-{number}"
            hooks.append(hook := Hook(name, instance))
            if not hook.internal:
                self._assembly.register(f"hook.{name}", instance)
        return hooks

    def _writers(self) -> list[LogWriter]:
        if self._context.run.folder is None:
            return []
        writers = []
        for section in self._config.sections["logger"]:
            build = partial(self._assembly.build, section.provided, section.config, section.name)
            writer = open_writer(section.name, build, section.required)
            self._assembly.register(f"logger.{section.name}", writer, section.provided.owner.distribution)
            writers.append(writer)
        return writers

    def _store(self) -> tuple[Store | None, CheckpointSchedule | None]:
        folder, settings = self._context.run.folder, self._config.checkpoint
        if folder is None:
            return None, None
        checkpoints = folder / run_folder.CHECKPOINTS
        check_place = run_folder.Presence(folder).check
        store = Store(checkpoints, self.backend, self.backend_name, settings.keep_last, settings.keep_best, check_place)
        every = settings.every or max(1, self._context.run.total_frames // 10)
        return store, CheckpointSchedule(Every(every), settings.keep_best, settings.on_failure, settings.in_background)
