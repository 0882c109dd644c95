"""What the trainers, builders and hook objects ask of objects that a script hands over, most of them of TorchRL.

They are asked for by their methods and attributes, as TorchRL is not imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rlcore.types import Progress


class KnowsEnv(Protocol):
    """A collector of TorchRL with envs of its own."""

    def getattr_env(self, attr: str) -> Any:
        """Return an attribute of an env, wherever it lies."""
        ...


class WithStorage(Protocol):
    """A replay buffer of TorchRL.

    Attributes:
        storage: holds its elements.
    """

    storage: Any


class OnDevice(Protocol):
    """A storage of TorchRL, or anything else that lies on a device.

    Attributes:
        device: of torch, or its name.
    """

    device: Any


class OfflineAndOnline(Protocol):
    """A replay buffer of TorchRL with data of another policy and with those of a run.

    Attributes:
        offline_buffer: with the former.
        online_buffer: with the latter.
    """

    offline_buffer: Any
    online_buffer: Any

    def anneal(self, step: int, total_steps: int) -> object:
        """Sample fewer offline data."""
        ...


class TakesKeys(Protocol):
    """A loss or an estimator of TorchRL."""

    def set_keys(self, **keys: Any) -> object:
        """Take the names of entries."""
        ...


class WithLagrange(Protocol):
    """A loss of TorchRL with a Lagrange multiplier, or without.

    Attributes:
        with_lagrange: whether it has one.
    """

    with_lagrange: bool


class WithSpec(Protocol):
    """An env, or a module of TorchRL that makes actions.

    Attributes:
        spec: says what its spaces are.
    """

    spec: Any


class LogsHparams(Protocol):
    """A logger that shows settings."""

    def log_hparams(self, config: Any) -> object:
        """Show them."""
        ...


class ClockFollower(Protocol):
    """A policy whose exploration decays by the clocks of a run."""

    def follow(self, progress: Progress) -> None:
        """Decay by those clocks from here on."""
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


class Timed(Protocol):
    """A hook as the loop calls it.

    Attributes:
        name: of the hook, in metrics.
        instance: what has the points of the loop.
        seconds: spent in it.
        calls: so far.
    """

    name: str
    instance: Any
    seconds: float
    calls: int


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


class NamesFields(Protocol):
    """A named tuple, which nothing else tells from a plain one.

    Attributes:
        _fields: the names of its elements.
    """

    _fields: tuple[str, ...]


# what objects of TorchRL have for themselves, and a new version of it may change


class TakesActionSpec(Protocol):
    """A loss that derives its target entropy from the action space.

    Attributes:
        _action_spec: the spec of actions; None where it is not known yet.
    """

    _action_spec: Any


class WithTargetEntropy(Protocol):
    """A loss with an entropy that policies are to have.

    Attributes:
        _target_entropy: `"auto"`, or a number.
    """

    _target_entropy: Any


class WithWeightSchemes(Protocol):
    """A collector that can be sent weights.

    Attributes:
        _weight_sync_schemes: by destination; None or empty where there are none.
    """

    _weight_sync_schemes: Mapping[str, Any] | None


class Prefetching(Protocol):
    """A replay buffer that can sample ahead.

    Attributes:
        _prefetch: whether it does.
    """

    _prefetch: bool


class SamplesAhead(Protocol):
    """A replay buffer that sampled ahead.

    Attributes:
        _prefetch_queue: what is waiting to be taken.
    """

    _prefetch_queue: Sized
