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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import gymnasium
    import numpy as np
    import numpy.typing as npt
    import torch
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.progress import Progress

    Array: TypeAlias = npt.NDArray[Any]
    BoolArray: TypeAlias = npt.NDArray[np.bool_]

Key: TypeAlias = str | tuple[str, ...]
State: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class EnvSpec:
    """What the parts of a run need to know of a vector env.

    Attributes:
        id: name of the environment, for messages.
        observation_space: of one env, as the policy sees it (after the transforms).
        action_space: of one env.
        num_envs: how many envs step together.
        frame_skip: frames that one step counts.
        reset_mode: `same_step` when `step` returns the first observation of the next episode at once and hands the
            last one over as `final_observation`; `next_step` when it returns the last observation, and the following
            step only resets (that step is masked).
        max_episode_steps: steps after which an episode is truncated, when known.
    """

    id: str
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    num_envs: int
    frame_skip: int = 1
    reset_mode: Literal["same_step", "next_step"] = "same_step"
    max_episode_steps: int | None = None


class Step(NamedTuple):
    """What a vector env returns from one step. The arrays may be reused by the next call.

    Attributes:
        observation: `[env, *shape]`.
        reward: `[env]`, float.
        terminated: `[env]`, bool: the episode reached an end of its own; its value there is zero.
        truncated: `[env]`, bool: the episode was cut off; the value there is bootstrapped.
        final_observation: env index to the last observation of the episode that ended in this step
            (`same_step` envs only, empty otherwise).
        infos: env index to the info mapping of the episode that ended in this step.
    """

    observation: Array
    reward: Array
    terminated: BoolArray
    truncated: BoolArray
    final_observation: Mapping[int, Array]
    infos: Mapping[int, Mapping[str, Any]]


class Env(Protocol):
    """A vector of environments that step together, arrays in and arrays out."""

    spec: EnvSpec

    def reset(self, seed: int | None = None) -> Array:
        """Start every env anew, env `i` with `seed + i`, and return the observations `[env, *shape]`."""
        ...

    def step(self, action: Array) -> Step:
        """Apply `action`, `[env, *shape]` inside the action space, to every env."""
        ...

    def close(self) -> None:
        """Release what the envs hold. May be called twice."""
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
    """

    every: Literal["batch", "epoch"]

    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage` and `value_target`, each `[env, time, 1]`, in place."""
        ...


class Loss(Protocol):
    """A `torch.nn.Module` from a minibatch to named scalars.

    Attributes:
        requires: the parts of the model that it uses.
    """

    requires: tuple[str, ...]

    def __call__(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return 0-d tensors. Those named `loss_*` are summed and minimised; the others are metrics, detached."""
        ...


class Scheduler(Protocol):
    """A value as a function of progress, so that a resumed run needs no state for it."""

    target: str

    def value(self, initial: float, progress: Progress) -> float:
        """Return the value now, from the value that the config gave."""
        ...


class Episode(NamedTuple):
    """One finished episode.

    Attributes:
        return_: sum of the rewards of the env, without discount.
        length: steps.
        env_index: which env of the vector.
        infos: the info mapping of its last step.
    """

    return_: float
    length: int
    env_index: int
    infos: Mapping[str, Any]


class Collector(Protocol):
    """Fills batches with experience.

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
        """Take one optimisation step and return its metrics, 0-d tensors on the device."""
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


@dataclass(frozen=True)
class EvaluationResult:
    """Complete episodes of the deterministic policy on fixed seeds.

    Attributes:
        frames: training frames when it was made.
        seeds: one reset seed per episode.
        returns: undiscounted return per episode.
        lengths: steps per episode.
    """

    frames: int
    seeds: tuple[int, ...]
    returns: tuple[float, ...]
    lengths: tuple[int, ...]

    @property
    def mean_return(self) -> float:
        """Mean over the episodes."""
        return sum(self.returns) / len(self.returns)

    def returns_array(self) -> Array:
        """Return the returns as an array `[episode]`."""
        import numpy as np

        return np.asarray(self.returns, dtype=np.float64)

    def lengths_array(self) -> Array:
        """Return the lengths as an array `[episode]`."""
        import numpy as np

        return np.asarray(self.lengths, dtype=np.float64)

    @property
    def mean_length(self) -> float:
        """Mean number of steps of an episode."""
        return sum(self.lengths) / len(self.lengths)


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


class Logger(Protocol):
    """Writes metrics somewhere. Called from a thread of its own, one call at a time."""

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Write scalars; `step` is the number of environment frames."""
        ...

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Write the resolved config of the run, once, before the first metrics."""
        ...

    def flush(self) -> None:
        """Return when everything handed over is stored."""
        ...

    def close(self) -> None:
        """Flush and release. May be called twice."""
        ...

    def state_dict(self) -> State:
        """Return the position in what was written."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a position: what was written after it disappears."""
        ...


class Checkpointer(Protocol):
    """Writes and reads named tensors; the commit protocol and the structure around them are the core's."""

    def save(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Write `tensors` into files inside `folder`, which exists and is empty, and fsync them.

        Raises:
            OSError: the device is full, read-only or failing.
        """
        ...

    def load(self, folder: Path) -> Mapping[str, Tensor]:
        """Return the tensors of `folder`, mapped or copied, without running code from the files."""
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


@dataclass(frozen=True)
class RunInfo:
    """Identity of a run.

    Attributes:
        name: name of the run and of its folder.
        seed: the one seed from which every generator is derived.
        folder: where everything is written; None for a run that writes nothing.
        total_frames: the horizon of the schedules.
    """

    name: str
    seed: int
    total_frames: int
    folder: Path | None = None
    resolved_config: Mapping[str, Any] = field(default_factory=dict)
