"""What objects of other libraries have, most of all those of TorchRL that scripts hand over.

They are asked for by their methods, as none of these libraries is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable
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


class WarmsUp(Protocol):
    """A collector of TorchRL.

    Attributes:
        init_random_frames: with which its buffer is filled before anything is trained; None for none.
    """

    init_random_frames: int | None


class ShutsDown(Protocol):
    """A collector of TorchRL, a hook, or another owner of what must be ended."""

    def shutdown(self) -> object:
        """End everything that it started."""
        ...


class Stepping(Protocol):
    """Whatever takes steps: schedulers of torch, updaters of targets, policies whose exploration decays."""

    def step(self) -> object:
        """Take one."""
        ...


class TakesBatches(Protocol):
    """A replay buffer."""

    def extend(self, batch: Any) -> object:
        """Put the steps of a batch into it."""
        ...


class GivesSamples(TakesBatches, Protocol):
    """A replay buffer from which samples can be taken one by one."""

    def sample(self, batch_size: int | None = None) -> Any:
        """Return a sub-batch."""
        ...


class WithSampler(Protocol):
    """A replay buffer of TorchRL.

    Attributes:
        sampler: chooses what is sampled.
    """

    sampler: Any


class KnowsItsPass(Protocol):
    """A sampler of TorchRL that gives each element once before any of them again.

    Attributes:
        ran_out: whether a pass has ended.
    """

    ran_out: bool


class TakesPriorities(Protocol):
    """A replay buffer of TorchRL that reads the priorities of a sub-batch from its entries."""

    def update_tensordict_priority(self, data: Any) -> object:
        """Take them."""
        ...


class TakesIndexedPriorities(Protocol):
    """A replay buffer that is handed the priorities of a sub-batch beside their indices."""

    def update_priority(self, index: Any, priority: Any) -> object:
        """Take them."""
        ...


class NamesPriority(Protocol):
    """A replay buffer that says where priorities are.

    Attributes:
        priority_key: the entry of a sub-batch.
    """

    priority_key: Any


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


class Collects(Protocol):
    """A collector of rlcore, handed over as an object."""

    def collect(self) -> Any:
        """Return the next batch `[env, time]`."""
        ...


class MakesMinibatches(Protocol):
    """A buffer of rlcore, handed over as an object."""

    def minibatches(self) -> Iterable[Any]:
        """Yield what each optimisation step takes."""
        ...


class UpdatesModel(Protocol):
    """A collector of rlcore, handed over as an object."""

    def update_model(self) -> object:
        """Use the weights that the learner has now."""
        ...


class WithParamGroups(Protocol):
    """An optimizer of torch.

    Attributes:
        param_groups: parameters with their learning rate and other numbers.
    """

    param_groups: list[dict[str, Any]]


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


class TensorLike(Protocol):
    """A tensor of torch, or what may stand in its place, such as a TensorDict."""

    def numel(self) -> int:
        """Return how many elements it has."""
        ...

    def detach(self) -> Any:
        """Return it without the graph that it came from."""
        ...


class Clonable(Protocol):
    """A tensor of torch or a TensorDict."""

    def clone(self) -> Any:
        """Return a copy that shares no memory with it."""
        ...


class SelectsEntries(Protocol):
    """A TensorDict, as against any other mapping of tensors: its `keys` goes into nested ones."""

    def keys(self, include_nested: bool = False, leaves_only: bool = False) -> Iterable[Any]:
        """Yield the keys of its entries."""
        ...

    def select(self, *keys: Any) -> Any:
        """Return one with these entries alone."""
        ...


class MapsFiles(Protocol):
    """A storage of TorchRL that is memory-mapped.

    Attributes:
        scratch_dir: the folder of its files; None for one of its own.
    """

    scratch_dir: Any


class RefusesFiles(Protocol):
    """A storage of TorchRL that may refuse a folder in which files are already.

    Attributes:
        existsok: whether it takes them.
    """

    existsok: bool


class Annotated(Protocol):
    """A state dict of torch or tensordict.

    Attributes:
        _metadata: versions and batch sizes.
    """

    _metadata: Any


class NamesFields(Protocol):
    """A named tuple, which nothing else tells from a plain one.

    Attributes:
        _fields: the names of its elements.
    """

    _fields: tuple[str, ...]
