"""The interface of every kind of component, with shapes and dtypes; written before any implementation.

Nothing here runs: these are protocols, so an implementation inherits from nothing.

Key conventions of a batch, a `tensordict.TensorDict` of batch size `[env, time]`:

    observation, action, sample_log_prob, state_value, advantage, value_target
    next: observation, reward, done, terminated, truncated
    collector: mask          False marks a step that must be neither counted nor trained on

Rewards, flags, values and log-probabilities end in a dimension of size 1. `done = terminated | truncated`;
the two are kept apart down to the value target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from rlcore.output_types import Checkpointer as Checkpointer
from rlcore.output_types import InPlaceCheckpointer as InPlaceCheckpointer
from rlcore.output_types import Logger as Logger
from rlcore.records import EnvSpec as EnvSpec
from rlcore.records import Episode as Episode
from rlcore.records import EvaluationResult as EvaluationResult
from rlcore.records import RunInfo as RunInfo
from rlcore.records import Step as Step

if TYPE_CHECKING:
    import gymnasium
    import torch
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.progress import Progress
    from rlcore.records import Array as Array
    from rlcore.records import BoolArray as BoolArray

Key: TypeAlias = str | tuple[str, ...]
State: TypeAlias = dict[str, Any]


class Env(Protocol):
    """A vector of environments that step together, arrays in and arrays out."""

    @property
    def spec(self) -> EnvSpec:
        """Spaces, counts and how the envs are reset."""
        ...

    def reset(self, seed: int | None = None) -> Array:
        """Start every env anew, env `i` with `seed + i`, and return the observations `[env, *shape]`."""
        ...

    def step(self, action: Array) -> Step:
        """Apply `action`, `[env, *shape]` inside the action space, to every env."""
        ...

    def close(self) -> None:
        """Release what the envs hold. May be called twice."""
        ...


@runtime_checkable
class RenderableEnv(Env, Protocol):
    """An env that can show itself; its config has a key `render_mode`, None by default.

    Attributes:
        render_fps: steps per second at which the pictures of all steps show real time.
    """

    render_fps: float

    def render(self, indices: Sequence[int] | None = None) -> Array:
        """Return pictures of these envs, or of all, as they stand: uint8 `[picture, height, width, 3]`.

        Raises:
            EnvError: it was made without a `render_mode`, or there is nothing to render with; says what to install.
        """
        ...


class Transform(Protocol):
    """Changes observations before the actor sees them, or batches after they were collected."""

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the space of one observation after the transform."""
        ...

    def fit(self, env: Env) -> None:
        """Take initial statistics, for example from random frames. `env` is used for nothing else afterwards."""
        ...

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the transformed observations, `[env, *shape]`; called before every policy step.

        `first`, `[env]`, marks the observations that begin an episode.
        """
        ...

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the transformed last observation `[*shape]` of an episode; called before the `step` that follows."""
        ...

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the transformed batch `[env, time]`; called once after collection."""
        ...

    def frozen(self) -> Transform:
        """Return a copy for evaluation that shares no state and does not learn from what it sees."""
        ...


class ActionTransform(Transform, Protocol):
    """A transform that also changes actions. The batch holds those of the policy, the env gets those of the transform.

    Where several transforms do, an action passes them in the opposite order of observations.
    """

    def action_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return the space of the actions that the policy takes, from that of the actions that `action` returns."""
        ...

    def action(self, action: Array) -> Array:
        """Return what the env gets for the actions `[env, *shape]` of the policy, as a new array."""
        ...


class Distribution(Protocol):
    """A family of distributions over actions; one tensor of parameters `[..., num_parameters]` picks one."""

    num_parameters: int

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Draw everything random that `sample` needs: `[*shape, ...]`, on the generator's device."""
        ...

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[..., *action]`; all randomness is in `noise`."""
        ...

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the deterministic action `[..., *action]`."""
        ...

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return log-probabilities `[..., 1]` of `action`."""
        ...

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return entropies `[..., 1]`, differentiable."""
        ...

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, which share most of their work."""
        ...


@runtime_checkable
class Policy(Protocol):
    """Chooses actions during collection and evaluation. Called without gradients."""

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Draw the randomness of a whole batch at once: `[time, env, ...]`."""
        ...

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions `[env, *action]` and what `describe` needs later `[env, ...]`."""
        ...

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return further entries of the batch, such as `sample_log_prob`; once per batch, any leading shape."""
        ...

    def mode(self, observation: Tensor) -> Tensor:
        """Return the deterministic actions `[env, *action]`."""
        ...

    def refresh(self) -> None:
        """Follow the weights of the model; called before each batch and each evaluation."""
        ...


class Model(Protocol):
    """A `torch.nn.Module` whose named parts (`actor`, `critic`, …) are attributes, so that parts can share a body."""

    policy: Policy

    def parts(self) -> tuple[str, ...]:
        """Return the names of the parts that were built."""
        ...


class Estimator(Protocol):
    """Writes advantages and value targets into a collected batch.

    Attributes:
        every: `batch` to run once after collection, `epoch` to run again before each epoch.

    A class attribute `requires` names the parts of the model that it uses, as for a loss; none by default. One that
    writes further entries names them in `writes`.
    """

    every: Literal["batch", "epoch"]

    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage` and `value_target`, each `[env, time, 1]`, in place."""
        ...


class Loss(Protocol):
    """A `torch.nn.Module` from a minibatch to named scalars.

    A loss with target networks also has an attribute `target_updater`, a `rlcore.targets.TargetUpdater`: the learner
    calls its `step()` after each optimisation step, and saves its state.

    Attributes:
        requires: the parts of the model that it uses.

    A class or instance attribute `reads`, a tuple of keys, names the entries without which it cannot be computed, such
    as `("observation", "advantage", ("next", "reward"))`. A run in which nothing writes them is then refused before its
    first frame. Policies, transforms, collectors, buffers and hooks say what they add to a batch by `writes`; one that
    does not say may add anything.
    """

    requires: tuple[str, ...]

    def __call__(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return 0-d tensors. Those named `loss_*` are summed and minimised; the others are metrics, detached.

        One other shape is known: `td_error` `[sample, 1]`, which a prioritized buffer reads in its `feedback`.
        """
        ...


class Scheduler(Protocol):
    """A value as a function of progress, so that a resumed run needs no state for it."""

    target: str

    def value(self, initial: float, progress: Progress) -> float:
        """Return the value now, from the value that the config gave."""
        ...


class Collector(Protocol):
    """Fills batches with experience.

    A method `metrics() -> Mapping[str, float]`, where there is one, gives figures of the last batch to log.

    Attributes:
        batch_steps: steps in a batch, over all envs.
    """

    batch_steps: int

    def collect(self) -> TensorDict:
        """Return the next batch `[env, time]`. Its tensors may be reused by the following call."""
        ...

    def episodes(self) -> Iterable[Episode]:
        """Return the episodes that ended in the last batch."""
        ...

    def update_model(self) -> None:
        """Use the weights that the learner has now."""
        ...

    def close(self) -> None:
        """Release envs and workers."""
        ...


@runtime_checkable
class BackgroundCollector(Protocol):
    """A collector that fills a replay buffer while the learner works; its `collect` returns None."""

    def steps_written(self) -> int:
        """Return how many steps it has written so far."""
        ...


class Buffer(Protocol):
    """Turns batches into minibatches.

    Attributes:
        num_epochs: passes of optimisation per iteration.
        warmup_frames: frames to collect before the first one.
    """

    num_epochs: int
    warmup_frames: int

    def add(self, batch: TensorDict) -> None:
        """Take a batch in. What is kept beyond this iteration is copied."""
        ...

    def minibatches(self, batch: TensorDict) -> Iterator[Mapping[Key, Tensor]]:
        """Yield the minibatches `[sample]` of one epoch; an on-policy buffer draws them from `batch`."""
        ...

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Hear the result of the update with `minibatch`, for example to set priorities."""
        ...


class Learner(Protocol):
    """Owns one optimisation step."""

    def update(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Take one optimisation step and return what the loss returned, and more metrics, on the device."""
        ...

    def end_iteration(self) -> None:
        """Move the schedules.

        Raises:
            NumericalError: a loss or gradient of this iteration was not finite.
        """
        ...

    def scheduled(self) -> Mapping[str, float]:
        """Return the numbers that schedules move, for logging."""
        ...


class Evaluator(Protocol):
    """Measures the policy without training on what it sees.

    Attributes:
        every: the interval, `None` for never.
        at_start: whether to evaluate before the first frame.
    """

    every: int | Mapping[str, int] | None
    at_start: bool

    def evaluate(self) -> EvaluationResult:
        """Run the episodes and return them."""
        ...

    def close(self) -> None:
        """Release the envs."""
        ...


@runtime_checkable
class Stateful(Protocol):
    """Whatever has state that a checkpoint must carry."""

    def state_dict(self) -> Mapping[str, Any]:
        """Return tensors, arrays, numbers, strings, and lists and dicts of them."""
        ...

    def load_state_dict(self, state: Any) -> Any:
        """Take back what `state_dict` returned."""
        ...
