"""Trainers that learn from a replay buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Unpack

from rlcore.errors import ConfigError
from rlcore.types import offers
from rlcore_plugin_torchrl.algorithms.base import NamedTrainer
from rlcore_plugin_torchrl.algorithms.greedy import GreedySteps
from rlcore_plugin_torchrl.algorithms.recipes import CQL, DDPG, DQN, IQL, SAC, TD3, Recipe
from rlcore_plugin_torchrl.algorithms.steppers import RankingStepper
from rlcore_plugin_torchrl.protocols import KnowsEnv, TakesActionSpec, WithLagrange, WithSpec, WithTargetEntropy

if TYPE_CHECKING:
    from rlcore_plugin_torchrl.algorithms.arguments import (
        ContinuousArguments,
        DDPGArguments,
        DQNArguments,
        TD3Arguments,
    )


class DDPGTrainer(NamedTrainer):
    """Deep deterministic policy gradient.

    Args:
        arguments: those of `Trainer`, of which `target_net_updater` is required; `enable_logging`, `log_rewards`,
            `log_actions`, `log_observations`; the names of entries, `done_key`, `terminated_key`, `reward_key`,
            `episode_reward_key`, `action_key`, `observation_key`.
    """

    recipe: ClassVar[Recipe] = DDPG

    if TYPE_CHECKING:  # keywords for editors; the base has the one constructor

        def __init__(self, *, collector: Any, total_frames: int | None, **arguments: Unpack[DDPGArguments]) -> None: ...


class DQNTrainer(NamedTrainer):
    """Deep Q-learning, and mixed values of several agents.

    Args:
        arguments: those of `DDPGTrainer` but `log_actions`; `greedy_module`, with `step(frames)`, which lets the
            exploration of the collector's policy decay; `mixing_strategy`, `"qmix"` or `"vdn"`, for which rewards of
            agents are averaged into `aggregated_reward_key` and `aggregated_episode_reward_key`.

    Raises:
        ConfigError: there is a mixing strategy, and no name for what is averaged.
    """

    recipe: ClassVar[Recipe] = DQN

    if TYPE_CHECKING:  # keywords for editors; the base has the one constructor

        def __init__(self, *, collector: Any, total_frames: int | None, **arguments: Unpack[DQNArguments]) -> None: ...

    def prepare(self, collector: Any, arguments: dict[str, Any]) -> None:
        """Refuse a mixture without names."""
        names = ("aggregated_reward_key", "aggregated_episode_reward_key")
        if self._mixes() and any(self.options[name] is None for name in names):
            raise ConfigError(f"mixing_strategy = {self.options['mixing_strategy']!r} requires {' and '.join(names)}")

    def register_sending(self) -> None:
        """Let exploration decay before the weights are sent, and average rewards of agents."""
        greedy, policy = self.options["greedy_module"], self.policy()
        if greedy is not None:
            from tensordict.nn import TensorDictSequential

            policy = TensorDictSequential(policy, greedy)
            GreedySteps(greedy, self.progress).register(self)
        self.send(policy_weights_getter=self.weights_getter(policy))
        if self._mixes():
            self.register_op("batch_process", self._average_agents)

    def key(self, name: str) -> Any:
        """Return the entry of a name, of an average where there is one."""
        mixed = self.options[f"aggregated_{name}_key"] if name in ("reward", "episode_reward") else None
        return mixed if self._mixes() and mixed is not None else super().key(name)

    def _mixes(self) -> bool:
        return self.options["mixing_strategy"] in ("qmix", "vdn")

    def _average_agents(self, batch: Any) -> Any:
        for name in ("reward", "episode_reward"):
            values = batch.get(("next", super().key(name)), None)
            if values is not None:
                batch.set(("next", self.key(name)), values.mean(-2))
        return batch


class SACTrainer(NamedTrainer):
    """Soft actor-critic.

    Args:
        arguments: those of `DDPGTrainer`. A loss module that derives its target entropy from the action space is told
            that of the collector.
    """

    recipe: ClassVar[Recipe] = SAC

    if TYPE_CHECKING:  # keywords for editors; the base has the one constructor

        def __init__(self, *, collector: Any, total_frames: int | None, **arguments: Unpack[DDPGArguments]) -> None: ...

    def prepare(self, collector: Any, arguments: dict[str, Any]) -> None:
        """Tell the loss module the action space."""
        tell_action_space(collector, arguments.get("loss_module"))


class IQLTrainer(NamedTrainer):
    """Implicit Q-learning; arguments are those of `DDPGTrainer` without names of entries."""

    recipe: ClassVar[Recipe] = IQL

    if TYPE_CHECKING:  # keywords for editors; the base has the one constructor

        def __init__(
            self, *, collector: Any, total_frames: int | None, **arguments: Unpack[ContinuousArguments]
        ) -> None: ...


class CQLTrainer(NamedTrainer):
    """Conservative Q-learning; arguments are those of `IQLTrainer`, and the action space is told as in `SACTrainer`."""

    recipe: ClassVar[Recipe] = CQL

    if TYPE_CHECKING:  # keywords for editors; the base has the one constructor

        def __init__(
            self, *, collector: Any, total_frames: int | None, **arguments: Unpack[ContinuousArguments]
        ) -> None: ...

    def prepare(self, collector: Any, arguments: dict[str, Any]) -> None:
        """Tell the loss module the action space, and choose the losses."""
        loss = arguments.get("loss_module")
        tell_action_space(collector, loss)
        names = ["loss_actor", "loss_qvalue", "loss_cql", "loss_alpha"]
        names += ["loss_alpha_prime"] if offers(loss, WithLagrange) and loss.with_lagrange else []
        arguments["optimization_stepper"] = RankingStepper(names)


class TD3Trainer(NamedTrainer):
    """Twin delayed DDPG.

    Args:
        arguments: those of `IQLTrainer`; `optimization_stepper`, a `TD3OptimizationStepper`; `exploration_module`, with
            which the collector's policy ends.
    """

    recipe: ClassVar[Recipe] = TD3

    if TYPE_CHECKING:  # keywords for editors; the base has the one constructor

        def __init__(self, *, collector: Any, total_frames: int | None, **arguments: Unpack[TD3Arguments]) -> None: ...

    def policy(self) -> Any:
        """Return the actor, with the exploration behind it that the collector has."""
        explore = self.options["exploration_module"]
        if explore is None:
            return super().policy()
        from tensordict.nn import TensorDictSequential

        return TensorDictSequential(super().policy(), explore)


def _needs_no_space(loss: Any) -> bool:
    """Return whether a loss module was given its target entropy, or derives it from a space that its actor knows."""
    if not offers(loss, WithTargetEntropy) or loss._target_entropy is None:
        return False
    return loss._target_entropy != "auto" or _action_spec(loss) is not None


def _action_spec(loss: Any) -> Any:
    spec: Any = loss.actor_network.spec if offers(loss.actor_network, WithSpec) else None
    return spec.get(loss.tensor_keys.action) if offers(spec, _OfEntries) else spec


class _OfEntries(Protocol):
    """A spec with one for each entry."""

    def get(self, key: Any) -> Any: ...


def tell_action_space(collector: Any, loss: Any) -> None:
    """Tell a loss module the action space of a collector, if its target entropy follows from one that it lacks.

    Raises:
        ConfigError: the collector does not know it.
    """
    if not offers(loss, TakesActionSpec) or loss._action_spec is not None:
        return
    if _needs_no_space(loss):
        return
    if not offers(collector, KnowsEnv):
        raise ConfigError(
            f"the target entropy of {type(loss).__name__} follows from the action space, which a "
            f"{type(collector).__name__} as the collector does not know; hand action_spec to the loss"
        )
    loss._action_spec = collector.getattr_env("full_action_spec_unbatched").cpu()
