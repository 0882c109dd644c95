"""Building several policies: each with its own parts, and what makes one run of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

from rlcore.assembly.assembly import Assembly
from rlcore.config.problems import BuildProblems
from rlcore.config.sections import Config
from rlcore.errors import ConfigError, NotBuiltError
from rlcore.hooks.points import Hook, LoopHooks
from rlcore.policies.batches import OwnBatches
from rlcore.policies.buffer import JointBuffer
from rlcore.policies.estimator import JointEstimator
from rlcore.policies.learner import JointLearner, OwnLearner
from rlcore.policies.model import JointModel
from rlcore.policies.points import JointHooks
from rlcore.policies.shares import Shares, assigned, check_transforms
from rlcore.run.learning import NEEDS, OnePolicy
from rlcore.types import BackgroundCollector, Key
from rlcore.types.optional import BatchSized, EntryWriter, offers

Built = TypeVar("Built")


class SeveralPolicies:
    """Builds the parts of each policy, which sees its own agents alone, and joins them.

    Args:
        config: with the sections of all.
        assembly: takes the parts.
        problems: takes what is wrong with them.
    """

    def __init__(self, config: Config, assembly: Assembly, problems: BuildProblems) -> None:
        self._config = config
        self._assembly = assembly
        self._problems = problems
        self._policies: dict[str, OnePolicy] = {}

    def build_policies(self) -> None:
        """Find out which policy acts for whom, and build what each is and is trained by."""
        if self._attempt("model", self._share_out) is None:
            return
        for policy in self._policies.values():
            policy.build_policies()
        self._join("model", self._joint_model)
        self._join("estimator", self._joint_estimator)

    def build_buffers(self) -> None:
        """Build the buffer of each, for its share of a batch."""
        if self._attempt("buffer", self._share_out_batches) is None:
            return
        for policy in self._policies.values():
            policy.build_buffers()
        self._join("buffer", self._joint_buffer)

    def part_hooks(self) -> list[Any]:
        """Return the hooks that losses and buffers bring."""
        return [hook for policy in self._policies.values() for hook in policy.part_hooks()]

    def points(self, hooks: list[Hook]) -> LoopHooks:
        """Return the points of the run; hooks of a loss or buffer are called for the updates of its policy alone."""
        own = {name: {id(hook) for hook in policy.part_hooks()} for name, policy in self._policies.items()}
        joint = JointHooks(hooks, {name: [h for h in hooks if id(h.instance) in ids] for name, ids in own.items()})
        for name, policy in self._policies.items():
            policy.context.built["hooks"] = joint.of(name)
        return joint

    def build_learners(self) -> None:
        """Build the learner of each, with clocks that count its own updates."""
        for name, policy in self._policies.items():
            policy.count_own_updates(name)
            policy.build_learners()
        self._join("learner", self._joint_learner)

    def check(self) -> None:
        """Check the parts of each."""
        for policy in self._policies.values():
            policy.check()

    def _attempt(self, kind: str, build: Callable[[], Any]) -> Any:
        return self._problems.attempt(kind, build, NEEDS.get(kind, ()))

    def _join(self, kind: str, join: Callable[[], Any]) -> None:
        """Put the joint part of a kind in its place, where every policy has its own."""
        if not self._problems.has(kind):
            return
        joint = self._attempt(kind, join)
        if self._problems.has(kind):
            self._assembly.context.built[kind] = joint

    def _of_each(self, kind: str) -> dict[str, Any]:
        """Return the parts of a kind by policy; one that has none is left out."""
        built = {name: policy.context.built.get(kind) for name, policy in self._policies.items()}
        return {name: part for name, part in built.items() if part is not None}

    def _share_out(self) -> Shares:
        context, config = self._assembly.context, self._config
        if context.run.total_updates is not None:
            raise ConfigError(
                "[run] total_updates: each of several policies ([model.NAME]) counts updates of its own, so that they "
                "are no length of the run; give total_frames instead"
            )
        spec = context.env_spec
        self._shares = assigned(spec, {entry.policy: entry.agents for entry in config.sections["model"]})
        check_transforms(spec, context.transforms)
        context.built["policies"] = self._shares.policies
        for name in config.policies:
            parts = {**context.built, "env_spec": self._shares.spec(name, spec)}
            assembly = copy(self._assembly)
            assembly.context = replace(context, parts=parts)
            self._policies[name] = OnePolicy(config.of_policy(name), assembly, _OfPolicy(name, self._problems))
        return self._shares

    def _share_out_batches(self) -> OwnBatches:
        context = self._assembly.context
        collector, spec = context.collector, context.env_spec
        if isinstance(collector, BackgroundCollector):
            raise ConfigError(
                f"[collector] {type(collector).__name__} fills a buffer itself, and does not know several policies "
                '([model.NAME]): set use = "local"'
            )
        self._batches = OwnBatches(self._shares, self._model().policy, spec.num_envs)
        for policy in self._policies.values():
            own = policy.context.env_spec.num_envs
            policy.context.built["collector"] = _ShareOfCollector(collector, own, spec.num_envs)
        return self._batches

    def _joint_model(self) -> JointModel:
        specs = {name: policy.context.env_spec for name, policy in self._policies.items()}
        context = self._assembly.context
        return JointModel(self._of_each("model"), self._shares, specs, context.env_spec, context.device)

    def _model(self) -> JointModel:
        model: Any = self._assembly.context.model
        assert isinstance(model, JointModel)
        return model

    def _joint_estimator(self) -> JointEstimator | None:
        batches = OwnBatches(self._shares, self._model().policy, self._assembly.context.env_spec.num_envs)
        estimators = self._of_each("estimator")
        return JointEstimator(estimators, batches) if estimators else None

    def _joint_buffer(self) -> JointBuffer:
        return JointBuffer(self._of_each("buffer"), self._batches, self._assembly.context.progress)

    def _joint_learner(self) -> JointLearner:
        context = self._assembly.context
        learners = {
            name: OwnLearner(policy.context.learner, policy.context.progress, policy.context.optimizers)
            for name, policy in self._policies.items()
        }
        return JointLearner(learners, context.model, context.progress, context.group)


class _ShareOfCollector:
    """What a buffer or an estimator of one policy may know of the collector of all."""

    def __init__(self, collector: Any, own_envs: int, num_envs: int) -> None:
        if offers(collector, BatchSized):
            self.batch_steps = collector.batch_steps * own_envs // num_envs
        if offers(collector, EntryWriter):
            self.writes: tuple[Key, ...] = tuple(collector.writes)


class _OfPolicy(BuildProblems):
    """Takes what is wrong with the parts of one policy, and says whose they are."""

    def __init__(self, name: str, problems: BuildProblems) -> None:
        self._name = name
        self._all = problems

    def attempt(self, kind: str, build: Callable[..., Built], needs: Iterable[str] = ()) -> Built | None:
        """Return what `build` returns, or None; see the method of all."""

        def named(**keys: Any) -> Built:
            try:
                return build(**keys)
            except NotBuiltError:
                raise
            except ConfigError as error:
                raise ConfigError(f"policy {self._name!r}: {error}", remedy=error.remedy) from error

        return self._all.attempt(kind, named, needs)

    def has(self, kind: str) -> bool:
        """Return whether nothing of a kind is missing."""
        return self._all.has(kind)
