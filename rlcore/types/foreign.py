"""What objects of other libraries have, most of all those of TorchRL that scripts hand over.

They are asked for by their methods, as none of these libraries is imported here.
"""

from __future__ import annotations

from typing import Any, Protocol


class TensorDictLike(Protocol):
    """A TensorDict or tensorclass.

    Attributes:
        batch_size: the leading dimensions that all entries share.
    """

    batch_size: Any


class FillsBuffer(Protocol):
    """A collector of TorchRL with a replay buffer of its own, into which it may write."""

    def getattr_rb(self, attr: str) -> Any:
        """Return an attribute of that buffer, wherever it lies."""
        ...


class FillsBufferInBackground(FillsBuffer, Protocol):
    """A collector of TorchRL that can write into its replay buffer while the caller does something else."""

    def start(self) -> object:
        """Begin to."""
        ...


class SeedableCollector(Protocol):
    """A collector of TorchRL whose envs can be seeded."""

    def set_seed(self, seed: int, static_seed: bool = False) -> Any:
        """Seed them, and return the seed for what comes after them."""
        ...


class ShutsDown(Protocol):
    """A collector of TorchRL, or another owner of processes."""

    def shutdown(self) -> object:
        """End everything that it started."""
        ...


class Stepping(Protocol):
    """Whatever takes steps: schedulers of torch, updaters of targets, policies whose exploration decays."""

    def step(self) -> object:
        """Take one."""
        ...


class WithSampler(Protocol):
    """A replay buffer of TorchRL.

    Attributes:
        sampler: chooses what is sampled.
    """

    sampler: Any


class TakesPriorities(Protocol):
    """A replay buffer of TorchRL that reads the priorities of a sub-batch from its entries."""

    def update_tensordict_priority(self, data: Any) -> object:
        """Take them."""
        ...


class SendsWeights(Protocol):
    """What sends weights to where policies act: a scheme of TorchRL."""

    def update_weights(self, weights: Any = None) -> object:
        """Send them."""
        ...


class UpdatesPolicyWeights(Protocol):
    """A collector of TorchRL that acts with a copy of the weights."""

    def update_policy_weights_(self, weights: Any = None) -> object:
        """Copy them again."""
        ...


class UpdatesModel(Protocol):
    """A collector of rlcore, handed over as an object."""

    def update_model(self) -> object:
        """Use the weights that the learner has now."""
        ...


class RollsOut(Protocol):
    """An env of TorchRL, or one of rlcore in a script."""

    def rollout(self, max_steps: int, policy: Any = None) -> Any:
        """Return what happens in so many steps."""
        ...


class WithTransform(Protocol):
    """A transformed env of TorchRL.

    Attributes:
        transform: one, or several as one.
    """

    transform: Any


class Dumps(Protocol):
    """A transform of TorchRL that keeps something to be written, such as a video."""

    def dump(self, suffix: str | None = None) -> object:
        """Write it."""
        ...


class WithTrainingMode(Protocol):
    """A module of torch, or an env that holds some.

    Attributes:
        training: whether it is in training mode.
    """

    training: bool

    def train(self) -> object:
        """Enter training mode."""
        ...

    def eval(self) -> object:
        """Leave it."""
        ...


class LogsHparams(Protocol):
    """A logger that shows settings."""

    def log_hparams(self, config: Any) -> object:
        """Show them."""
        ...
