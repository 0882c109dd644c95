"""What makes one run of several policies, each with its own parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rlcore.errors import ConfigError
from rlcore.run import Config
from rlcore.types import Collector, Key, Part, defines, with_defaults
from rlcore_plugin_policies.batches import OwnBatches
from rlcore_plugin_policies.buffer import JointBuffer
from rlcore_plugin_policies.estimator import JointEstimator
from rlcore_plugin_policies.learner import JointLearner, OwnLearner
from rlcore_plugin_policies.model import JointModel
from rlcore_plugin_policies.shares import assigned, check_transforms


class JointParts:
    """Makes the parts of a run of those of its policies, each of which sees its own agents alone.

    Args:
        config: with the sections of all.
        assembly: of the run; has envs and transforms.
        builder: returns what builds the parts of a policy, by its name and the assembly of these parts.

    Attributes:
        policies: what builds the parts of each policy, by its name.

    Raises:
        ConfigError: the policies do not share the agents out.
    """

    def __init__(self, config: Config, assembly: Any, builder: Callable[[str, Any], Any]) -> None:
        context = assembly.context
        if context.run.total_updates is not None:
            raise ConfigError(
                "[run] total_updates: each of several policies ([model.NAME]) counts updates of its own, so that they "
                "are no length of the run; give total_frames instead"
            )
        spec = context.env_spec
        self._context = context
        self._shares = assigned(spec, {entry.policy: entry.agents for entry in config.sections["model"]})
        check_transforms(spec, context.transforms)
        context.built["policies"] = self._shares.policies
        self.policies = {
            name: builder(name, assembly.of_policy(self._shares.spec(name, spec))) for name in config.policies
        }

    def share_out_batches(self) -> OwnBatches:
        """Let the buffer of each policy know its share of what the collector collects.

        Raises:
            ConfigError: the collector fills a buffer itself.
        """
        collector, num_envs = self._context.collector, self._context.env_spec.num_envs
        if defines(collector, Collector.steps_written):
            raise ConfigError(
                f"[collector] {type(collector).__name__} fills a buffer itself, and does not know several policies "
                '([model.NAME]): set use = "local"'
            )
        self._batches = self._own_batches()
        for policy in self.policies.values():
            own = policy.context.env_spec.num_envs
            policy.context.built["collector"] = _ShareOfCollector(collector, own, num_envs)
        return self._batches

    def model(self) -> JointModel:
        """Return the models as one."""
        return JointModel(self._of_each("model"), self._shares, self._context.env_spec, self._context.device)

    def estimator(self) -> JointEstimator | None:
        """Return the estimators as one; None where no policy has one."""
        estimators = self._of_each("estimator")
        return JointEstimator(estimators, self._own_batches()) if estimators else None

    def buffer(self) -> JointBuffer:
        """Return the buffers as one."""
        return JointBuffer(self._of_each("buffer"), self._batches, self._context.progress)

    def learner(self) -> JointLearner:
        """Return the learners as one."""
        context = self._context
        learners = {
            name: OwnLearner(policy.context.learner, policy.context.progress, policy.context.optimizers)
            for name, policy in self.policies.items()
        }
        return JointLearner(learners, context.model, context.progress, context.group)

    def _of_each(self, kind: str) -> dict[str, Any]:
        """Return the parts of a kind by policy; one that has none is left out."""
        built = {name: policy.context.built.get(kind) for name, policy in self.policies.items()}
        return {name: part for name, part in built.items() if part is not None}

    def _own_batches(self) -> OwnBatches:
        model: Any = self._context.model
        assert isinstance(model, JointModel)
        return OwnBatches(self._shares, model.policy, self._context.env_spec.num_envs)


class _ShareOfCollector:
    """What a buffer or an estimator of one policy may know of the collector of all."""

    def __init__(self, collector: Any, own_envs: int, num_envs: int) -> None:
        batch_steps = with_defaults(collector, Collector).batch_steps
        self.batch_steps = None if batch_steps is None else batch_steps * own_envs // num_envs
        self.writes: Sequence[Key] | None = with_defaults(collector, Part).writes
