"""Building what one policy is and learns by: model, loss, estimator, optimizers, schedules, buffer and learner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from rlcore.assembly.assembly import Assembly, hooks_of, to_device
from rlcore.config.problems import BuildProblems
from rlcore.config.sections import Config, Section
from rlcore.config.validation import checked
from rlcore.errors import ConfigError
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.policies.shares import check_one_policy
from rlcore.training.entries import check_entries, writers_of
from rlcore.training.memory import check_memory
from rlcore.training.updates import check_paces, warn_of_no_updates
from rlcore.types.context import Context
from rlcore.types.optional import Schedulable, offers
from rlcore.types.progress import Progress

# the kinds without which a part of a kind cannot be built
NEEDS: Final = {
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
    "some envs": ("env", "transform", "collector", "buffer", "hook", "hooks"),
}


class Learning(Protocol):
    """Builds the parts of a run that belong to its policies, in the order of these methods."""

    def build_policies(self) -> None:
        """Build models, losses, estimators, optimizers and schedulers."""

    def build_buffers(self) -> None:
        """Build buffers; the collector is there."""

    def part_hooks(self) -> list[Any]:
        """Return the hooks that losses and buffers bring."""
        ...

    def points(self, hooks: list[Hook]) -> LoopHooks:
        """Return the points of the run, where these hooks are called."""
        ...

    def build_learners(self) -> None:
        """Build learners, and check what they are asked to do."""

    def check(self) -> None:
        """Check that the parts fit each other; all are there."""


class OnePolicy:
    """Builds the parts of one policy.

    Args:
        config: its own sections, and those of all.
        assembly: takes the parts.
        problems: takes what is wrong with them.
    """

    def __init__(self, config: Config, assembly: Assembly, problems: BuildProblems) -> None:
        self._config = config
        self._assembly = assembly
        self._problems = problems

    @property
    def context(self) -> Context:
        """What the parts are built with; has them afterwards."""
        return self._assembly.context

    def build_policies(self) -> None:
        """Build the model, and what its weights are trained by."""
        parts, sections = self.context.built, self._config.sections
        if self._problems.has("env") and "env_spec" in parts:
            self._attempt("env", lambda: check_one_policy(parts["env_spec"]))
        self._build_one("model")
        self._build_one("loss", self._loss)
        self._build_one("estimator", self._estimator)
        for kind in ("optimizer", "scheduler"):
            built = {
                own_name(entry): self._attempt(kind, partial(self._assembly.section, entry)) for entry in sections[kind]
            }
            if self._problems.has(kind):
                parts[f"{kind}s"] = built if kind == "optimizer" else list(built.values())

    def count_own_updates(self, name: str) -> None:
        """Let the learner have clocks of its own, in checkpoints under the name of the policy."""
        own = self._assembly.register(f"progress.{name}", Progress(self.context.run.total_frames))
        self._assembly.context = replace(self.context, progress=own)

    def build_buffers(self) -> None:
        """Build the buffer."""
        self._build_one("buffer")

    def part_hooks(self) -> list[Any]:
        """Return the hooks that the loss and the buffer bring."""
        built = self.context.built
        return [*hooks_of(built.get("loss")), *hooks_of(built.get("buffer"))]

    def points(self, hooks: list[Hook]) -> LoopHooks:
        """Return the points of the run."""
        return LoopHooks(hooks)

    def build_learners(self) -> None:
        """Build the learner, and check schedules and paces."""
        self._build_one("learner")
        self._attempt("ranges", self._check_ranges)
        self._attempt("paces", self._check_updates)

    def check(self) -> None:
        """Check what the parts read, and whether all know a policy with a state."""
        self._attempt("entries", self._check_entries)
        self._attempt("memory", self._check_memory)

    def _attempt(self, kind: str, build: Callable[[], Any]) -> Any:
        return self._problems.attempt(kind, build, NEEDS.get(kind, ()))

    def _build_one(self, kind: str, build: Callable[[], Any] | None = None) -> None:
        """Build the only part of a kind; one that fails is not there for others."""
        if not self._problems.has(kind):
            return
        built = self._attempt(kind, build or partial(self._one, kind))
        if self._problems.has(kind):
            self.context.built[kind] = built

    def _estimator(self) -> Any:
        if (section := self._config.one("estimator")) is not None:
            self._check_model_parts(section.provided.target(), section)
        return self._one("estimator")

    def _loss(self) -> Any:
        """Build the loss; its weights are the model's, so it is not registered for checkpoints."""
        section = self._required("loss")
        self._check_model_parts(section.provided.target(), section)  # before it reaches for them
        loss = to_device(self._assembly.build(section.provided, section.config, section.name), self.context.device)
        self._check_model_parts(loss, section)  # what it requires may follow from its config
        return loss

    def _check_entries(self) -> None:
        """Hold what the loss reads against who writes it; the class speaks for a part that cannot be built."""
        parts = self.context.built
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
        built = self.context.built
        check_memory(built.get("model"), {kind: built.get(kind) for kind in ("loss", "estimator", "buffer")})

    def _check_ranges(self) -> None:
        """Refuse a schedule that takes a key of a part out of its range, of which zero is no matter."""
        end = Progress(1, frames=1)
        for scheduler in self.context.schedulers:
            kind, _, number = scheduler.target.partition(".")
            declares = offers(self.context.built.get(kind), Schedulable)
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
        check_paces(self.context.optimizers, self.context)
        warn_of_no_updates(self.context)

    def _required(self, name: str) -> Section:
        section = self._config.one(name)
        assert section is not None
        return section

    def _one(self, name: str, **keys: Any) -> Any:
        section = self._config.one(name)
        return None if section is None else self._assembly.section(section, not section.policy, **keys)

    def _check_model_parts(self, requiring: Any, section: Section) -> None:
        self._assembly.check_model_parts(requiring, section.provided, str(self._required("model").provided))


def own_name(section: Section) -> str:
    """Return the name of an optimizer or scheduler among those of its policy."""
    return section.name.removeprefix(f"{section.policy}.") if section.policy else section.name
