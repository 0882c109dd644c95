"""The interfaces of models: distributions over actions, policies, and the model that has both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rlcore.types.optional import offers
from rlcore.types.part import with_defaults

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Distribution(Protocol):
    """A family of distributions over actions; one tensor of parameters `[..., num_parameters]` picks one.

    Losses and policies call it with any leading shape: `[env]` in a step, `[time, env]` for a batch, `[sample]` for a
    minibatch. It has no weights and no state. All methods but `noise` are functions of their arguments alone, and can
    be compiled.

    Attributes:
        num_parameters: size of the last dimension of the parameters: the outputs of the actor.

    Called in `plugins/rlcore-plugin-mlp/src/rlcore_plugin_mlp/model_parts.py`:

        outputs = self._forward(observation)
        return self._distribution.sample(outputs, noise), outputs

    Called in `plugins/rlcore-plugin-ppo/src/rlcore_plugin_ppo/loss.py`:

        log_prob, entropies = self.actor.distribution.log_prob_and_entropy(parameters, minibatch["action"])
    """

    num_parameters: int

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Sample everything random that `sample` needs; called once per batch.

        Args:
            shape: leading shape, `(time, env)`.
            generator: the only source of randomness.

        Returns:
            `[*shape, ...]`, new, on the generator's device.
        """
        ...

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return the actions that the noise picks; the same arguments give the same actions.

        Args:
            parameters: `[..., num_parameters]`, float32.
            noise: `[..., ...]`, of `noise`.

        Returns:
            `[..., *action]`, dtype and bounds those of the action space.
        """
        ...

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the deterministic action `[..., *action]`, the likeliest one; for evaluations."""
        ...

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return log-probabilities of actions, or log-densities, with gradients for the parameters.

        Args:
            parameters: `[..., num_parameters]`.
            action: `[..., *action]`, inside the action space.

        Returns:
            `[..., 1]`, float32, normalised: the exponentials sum to one over the action space.
        """
        ...

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return entropies `[..., 1]`, float32, with gradients for the parameters."""
        ...

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return what `log_prob` and `entropy` return, which share most of their work."""
        ...


@runtime_checkable
class Policy(Protocol):
    """Chooses actions during collection and evaluation.

    It is the model's: `model.policy`. It acts in the process that trains, or with the copy of the model that a worker
    has. It is called without gradients, in torch's inference mode, on the device of the model. What `describe` adds to
    a batch, it may name in `writes`.

    Called in `plugins/rlcore-plugin-rollout/src/rlcore_plugin_rollout/local.py`:

        self._policy.refresh()

    Called in `plugins/rlcore-plugin-rollout/src/rlcore_plugin_rollout/env_collector.py`:

        return self._policy.draw(self._steps, envs, self._generator)

    Called in `plugins/rlcore-plugin-rollout/src/rlcore_plugin_rollout/stepping.py`:

        action, parameter = act(observation, rows_of_noise[time])

    Called in `plugins/rlcore-plugin-rollout/src/rlcore_plugin_rollout/batch_storage.py`:

        described = describe(torch.stack(parameters), actions.to(parameters[0].device))

    Called in `plugins/rlcore-plugin-rollout/src/rlcore_plugin_rollout/playing.py`:

        action = mode(observations).cpu().numpy()
    """

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the randomness of a whole batch at once; called once per batch, before its first step.

        Args:
            steps: of each env.
            num_envs: how many envs there are, over all workers.
            generator: the collector's, and the only source of randomness: its state is saved, so that a resumed run
                repeats the actions.

        Returns:
            `[time, env, ...]`, new, on the generator's device; `act` gets it row by row.
        """
        ...

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions and what `describe` needs later; called once per time step.

        Args:
            observation: `[env, *shape]`, as the transforms left it. A view of the collector's storage: read only.
            noise: `[env, ...]`, the row of `draw` of this step. An action depends on its own row alone.

        Returns:
            The actions `[env, *action]`, inside the action space, and `[env, ...]` for `describe`. Both new: they are
            kept until the end of the batch.
        """
        ...

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return further entries of the batch, such as `sample_log_prob`; called once per batch, after its last step.

        Args:
            parameters: the second results of `act`, `[time, env, ...]`.
            action: the actions, `[time, env, *action]`.

        Returns:
            Entries `[time, env, ...]` by key, the same keys for every batch; they are copied. Empty for none.
        """
        ...

    def mode(self, observation: Tensor) -> Tensor:
        """Return the deterministic actions `[env, *action]` for observations `[env, *shape]`; for evaluations."""
        ...

    def refresh(self) -> None:
        """Follow the weights of the model; called before each batch and each evaluation.

        Weights change in place between two calls, and may have been replaced or moved to another device.
        """
        ...


class Foretelling(Protocol):
    """A policy that knows some actions before it sees an observation, such as random ones; they ask no network.

    Its `describe` needs the actions alone.

    Called in `plugins/rlcore-plugin-rollout/src/rlcore_plugin_rollout/stepping.py`:

        answer = policy.foretold(noise) if offers(policy, Foretelling) else None
    """

    def foretold(self, noise: Tensor) -> tuple[Tensor, Sequence[bool]] | None:
        """Return the actions that follow from the noise of a batch; `act` would return the same.

        Args:
            noise: `[time, env, ...]`, from `draw`.

        Returns:
            Actions `[time, env, *action]`, in memory that nobody writes to later, and for each time whether those of
            all envs are known; the other rows do not count. None where none is known.
        """
        ...


class StatefulPolicy(Protocol):
    """A policy that remembers: a state per env goes from step to step, and begins again with each episode.

    It has the other methods of `Policy` too: `draw`, `describe` and `refresh`. The collector keeps the state, writes it
    into the batches (`rlcore.types`) and saves it; the policy itself keeps nothing between two calls.

    Called in `plugins/rlcore-plugin-rollout/src/rlcore_plugin_rollout/policy_state.py`:

        action, parameters, self._state = self._policy.act(observation, noise, self._state, first)

    Called in `plugins/rlcore-plugin-rollout/src/rlcore_plugin_rollout/carrying.py`:

        action, self.state = self._policy.mode(observation, self.state, self.first)
    """

    def initial_state(self, num_envs: int) -> Tensor:
        """Return the state with which episodes begin, `[env, *state]`, of floats, new, on the model's device.

        One tensor: a policy with several, as an LSTM has, puts them side by side.
        """
        ...

    def act(self, observation: Tensor, noise: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions, what `describe` needs, and the next state; called once per time step.

        Args:
            observation: as for `Policy.act`.
            noise: as for `Policy.act`.
            state: `[env, *state]`, what the call before returned, or `initial_state`. Not to be changed.
            first: `[env]`, bool: which observations are the first of an episode. Where it is True, the initial state
                counts in place of `state`, and what stands there does not matter.

        Returns:
            The first two as `Policy.act`; the state after this step, `[env, *state]`, new.
        """
        ...

    def mode(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the deterministic actions, and the next state; the arguments are those of `act`."""
        ...


class Model(Protocol):
    """A `torch.nn.Module` whose named parts (`actor`, `critic`, …) are attributes, so that parts can share a body.

    Built on the CPU with weights from `context.seed()`, then moved to the run's device, in evaluation mode. The
    optimizers take its parameters, and its `state_dict` is a part of every checkpoint. A critic maps observations
    `[..., *shape]` to values `[..., 1]`; an actor maps them to the parameters of its attribute `distribution`, and one
    without to actions.

    Attributes:
        policy: acts with the current weights.

    Called in `rlcore/run/assembly.py`:

        built = self.context.model.parts()
        missing = [part for part in with_defaults(requiring, Estimator).requires if part not in built]
    """

    policy: Policy

    def parts(self) -> tuple[str, ...]:
        """Return the names of the parts that were built; each is an attribute, a `torch.nn.Module`."""
        ...


def part_of(model: Any, name: str) -> Any:
    """Return a part of a model, one of those that its `parts()` names.

    Raises:
        AttributeError: the model has none of that name.
    """
    return getattr(model, name)  # the names are the model's own


class _Acts:
    """A model with or without a policy."""

    policy: Any = None


def policy_of(model: object) -> Any:
    """Return the policy of a model; None for a model with which nobody acts."""
    return with_defaults(model, _Acts).policy


def has_memory(model: object) -> bool:
    """Return whether the policy of a model has a state, and its parts are called `part(observation, state, first)`."""
    return offers(policy_of(model), StatefulPolicy)
