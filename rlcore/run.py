"""From a config to a ready trainer: the order of building, seeds, device, run folder, resume.

What is built is in the components; what happens then is in `trainer.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from rlcore import run_folder
from rlcore.checkpoint import CheckpointSchedule, Facts, Store
from rlcore.components import Provided
from rlcore.context import Context
from rlcore.errors import ConfigError
from rlcore.evaluations import Evaluations
from rlcore.exactness import differences, domain, inexact_parts, merged
from rlcore.hooks import Hook, LoopHooks
from rlcore.log_writer import LogWriter
from rlcore.metrics import Metrics
from rlcore.progress import Every, Progress
from rlcore.random_state import GlobalGenerators, seed_all
from rlcore.resume import Restored, ResumeOptions, changes, check_unchanged, restore
from rlcore.sections import Config, Section
from rlcore.trainer import Parts, Trainer
from rlcore.transformed import TransformedEnv
from rlcore.types import Checkpointer, Env, RunInfo, Transform

log = logging.getLogger(__name__)


@dataclass
class Run:
    """A trainer that is ready to run, with its folder.

    Attributes:
        report: what became of each component, when the run was resumed.
    """

    trainer: Trainer
    config: Config
    folder: Path | None
    report: list[Restored]
    backend: Checkpointer
    backend_name: str

    def load_weights(self, checkpoints: Path, best: bool = False) -> int:
        """Load model and transforms from the newest, or best, checkpoint of another folder; return its frame.

        Raises:
            StorageError: there is no checkpoint that can be loaded.
        """
        store = Store(checkpoints, self.backend, self.backend_name)
        entry = store.best() if best else None
        entry, states = (entry, store.load(entry)) if entry is not None else store.load_newest()
        wanted = {
            name: component
            for name, component in self.trainer.parts.stateful.items()
            if name == "model" or name.startswith("transform.")
        }
        restore(wanted, {name: state for name, state in states.items() if name in wanted}, {})
        self.trainer.progress.frames = entry.frames
        return entry.frames


def choose_device(name: str) -> torch.device:
    """Return the device that `[run] device` names.

    Raises:
        ConfigError: there is no such device here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise ConfigError(f"[run] device = {name!r}: torch sees {count} CUDA devices; use 'auto' or 'cpu'")
    return device


def build(
    config: Config,
    *,
    write: bool = True,
    resume: bool | ResumeOptions = False,
    hooks: Iterable[Any] = (),
) -> Run:
    """Build everything that the config names, in order, and restore the newest checkpoint when resuming.

    Args:
        config: validated.
        write: whether to make the run folder and write into it.
        resume: continue the run in that folder, perhaps with options.
        hooks: further hook instances, after those of the config.

    Raises:
        RlcoreError: something cannot be built; says what and whose it is.
    """
    folder = Path(config.run.folder) / config.run.name if write else None
    resolved, device = config.resolved(), choose_device(config.run.device)
    _prepare_folder(folder, bool(resume))
    lock = run_folder.Lock(folder) if folder is not None else None
    options = resume if isinstance(resume, ResumeOptions) else ResumeOptions()
    if resume and folder is not None and not options.accept_changes:
        check_unchanged(run_folder.read_config(folder), resolved)
    torch.set_num_threads(config.run.threads)
    seed_all(config.run.seed)
    context = Context(
        run=RunInfo(config.run.name, config.run.seed, config.run.total_frames, folder, resolved),
        device=device,
        progress=Progress(config.run.total_frames),
    )
    log.info("device %s, CPU threads: %d", context.device, config.run.threads)
    try:
        builder = _Builder(config, context)
        trainer = builder.trainer(hooks)
        run = Run(trainer, config, folder, [], builder.backend, builder.backend_name)
    except BaseException:
        if lock is not None:
            lock.release()
        _remove_unused(folder, bool(resume))
        raise
    if lock is not None:
        trainer.parts.release = lock.release
        _say_whether_exact(trainer, device)
    if resume and folder is not None:
        run.report = _restore(run, options, changes(run_folder.read_config(folder), resolved))
    if folder is not None:
        run_folder.write_config(folder, resolved)
    for writer in run.trainer.metrics.writers:
        writer.log_hparams(resolved)
    return run


def _prepare_folder(folder: Path | None, resume: bool) -> None:
    if folder is None:
        return
    if not resume:
        run_folder.make(folder)
    elif not folder.is_dir():
        raise ConfigError(f"--resume: run folder {str(folder)!r} does not exist; leave --resume out to begin the run")


def _remove_unused(folder: Path | None, resume: bool) -> None:
    """Leave no empty folder behind when a new run could not be built."""
    if folder is not None and not resume:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _say_whether_exact(trainer: Trainer, device: torch.device) -> None:
    """Find out, and say before the first frame, whether a resume of this run will be exact."""
    parts = trainer.parts
    reasons = merged(inexact_parts(parts.stateful, device))
    parts.facts = replace(parts.facts, inexact=reasons)
    for reason in reasons:
        log.warning("exact = false: %s", reason)


def _restore(run: Run, options: ResumeOptions, changed: list[str]) -> list[Restored]:
    """Restore the newest checkpoint; a run that was killed before its first begins anew."""
    parts = run.trainer.parts
    store = parts.store
    assert store is not None
    store.collect_leftovers()
    if store.is_empty():
        log.warning("%s has no checkpoint yet; the run begins anew", store.folder)
        return []
    entry, states = store.load_newest()
    manifest = entry.manifest
    report = run.trainer.load_state_dict(
        states, _version_notes(run, manifest), owners=manifest["owners"], drop=options.drop, fresh=options.fresh
    )
    here = [
        *(f"[config] {change}" for change in changed),
        *(f"{name} was dropped at frame {entry.frames}" for name in options.drop),
        *(f"{name} began anew at frame {entry.frames}" for name in options.fresh),
        *differences(manifest["domain"], parts.facts.domain),
        *differences(manifest["versions"], parts.facts.versions, "the version of "),
    ]
    for reason in here:
        log.warning("exact = false: %s", reason)
    parts.facts = replace(parts.facts, inexact=merged([*manifest["inexact"], *parts.facts.inexact, *here]))
    return report


def _version_notes(run: Run, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return a remark for each component whose distribution has another version than the checkpoint's."""
    here = run.trainer.parts.facts.versions
    notes = {}
    for name, distribution in manifest["owners"].items():
        wrote = manifest["versions"].get(distribution)
        if wrote is not None and wrote != here.get(distribution):
            notes[name] = f", but {distribution} is {here.get(distribution)} here and was {wrote}"
    return notes


class _Builder:
    """Builds the parts in order and registers everything that is built for checkpoints."""

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
            schedule=schedule,
            frame_skip=parts["env_spec"].frame_skip,
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
                transform.fit(TransformedEnv(fitting, transforms, parts["env_spec"]))
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
            writer = LogWriter(section.name, section.provided.build(section.config, context))
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
        return store, CheckpointSchedule(Every(every), settings.keep_best)


def _distribution(provided: Provided | None) -> str:
    return provided.owner.distribution if provided else "rlcore"
