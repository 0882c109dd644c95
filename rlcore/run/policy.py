"""Building the sections of a config, and of them what one policy is and learns by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from rlcore.config.sections import Config, Section
from rlcore.config.validation import checked
from rlcore.envs.checks import check_one_policy
from rlcore.errors import ConfigError, NotBuiltError
from rlcore.run.assembly import Assembly, hooks_of
from rlcore.run.problems import BuildProblems
from rlcore.training.checks import check_entries, check_memory, check_paces, warn_of_no_updates, writers_of
from rlcore.types.context import Context
from rlcore.types.part import Part, with_defaults
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


class SectionBuilder:
    """Builds the components of sections, each when those are there that it needs.

    Args:
        config: has the sections.
        assembly: takes the parts.
        problems: takes what is wrong with them.
        policy: whose parts they are, for messages; empty where a run has one policy, or for the parts of all.
    """

    def __init__(self, config: Config, assembly: Assembly, problems: BuildProblems, policy: str = "") -> None:
        self._config = config
        self._assembly = assembly
        self._problems = problems
        self._policy = policy

    @property
    def context(self) -> Context:
        """What the parts are built with; has them afterwards."""
        return self._assembly.context

    def attempt(self, kind: str, build: Callable[..., Any]) -> Any:
        """Return what `build` returns, or None where it fails, which is reported at the end."""
        build = partial(self._named, build) if self._policy else build
        return self._problems.attempt(kind, build, NEEDS.get(kind, ()))

    def build_one(self, kind: str, build: Callable[..., Any] | None = None) -> None:
        """Build the only part of a kind; one that fails is not there for others."""
        if not self._problems.has(kind):
            return
        built = self.attempt(kind, build or partial(self._one, kind))
        if self._problems.has(kind):
            self.context.built[kind] = built

    def _one(self, kind: str, **keys: Any) -> Any:
        section = self._config.one(kind)
        return None if section is None else self._assembly.part(section, not section.policy, **keys)

    def _required(self, kind: str) -> Section:
        section = self._config.one(kind)
        assert section is not None
        return section

    def _named(self, build: Callable[..., Any], **keys: Any) -> Any:
        """Call `build`; an error of the config says whose part it is."""
        try:
            return build(**keys)
        except NotBuiltError:
            raise
        except ConfigError as error:
            raise ConfigError(f"policy {self._policy!r}: {error}", remedy=error.remedy) from error


class PolicyBuilder(SectionBuilder):
    """Builds what one policy is and learns by; the config has its own sections, and those of all."""

    def build_model(self) -> None:
        """Build the model, and what its weights are trained by."""
        parts, sections = self.context.built, self._config.sections
        if self._problems.has("env") and "env_spec" in parts:
            self.attempt("env", lambda: check_one_policy(parts["env_spec"]))
        self.build_one("model")
        self.build_one("loss")
        self.build_one("estimator")
        for kind in ("optimizer", "scheduler"):
            built = {
                own_name(entry): self.attempt(kind, partial(self._assembly.part, entry)) for entry in sections[kind]
            }
            if self._problems.has(kind):
                parts[f"{kind}s"] = built if kind == "optimizer" else list(built.values())

    def part_hooks(self) -> list[Any]:
        """Return the hooks that the loss and the buffer bring."""
        built = self.context.built
        return [*hooks_of(built.get("loss")), *hooks_of(built.get("buffer"))]

    def build_learner(self) -> None:
        """Build the learner, and check schedules and paces; one of several policies counts its own updates."""
        if self._policy:
            clocks = self._assembly.register(f"progress.{self._policy}", Progress(self.context.run.total_frames))
            self._assembly.context = replace(self.context, progress=clocks)
        self.build_one("learner")
        self.attempt("ranges", self._check_ranges)
        self.attempt("paces", self._check_updates)

    def check(self) -> None:
        """Check what the parts read, and whether all know a policy with a state."""
        self.attempt("entries", self._check_entries)
        self.attempt("memory", self._check_memory)

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
            numbers = with_defaults(self.context.built.get(kind), Part).schedulable
            section = self._config.one(kind) if numbers is not None else None
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


def own_name(section: Section) -> str:
    """Return the name of an optimizer or scheduler among those of its policy."""
    return section.name.removeprefix(f"{section.policy}.") if section.policy else section.name
