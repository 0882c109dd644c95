"""A trainer that begins with data of another policy, and ends with its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from rlcore import TrainerHookBase
from rlcore.errors import ArgumentTypeError, ConfigError
from rlcore.types import MASK, missing
from rlcore_plugin_torchrl.algorithms.base import signature_of, storage_device
from rlcore_plugin_torchrl.algorithms.off_policy import SACTrainer
from rlcore_plugin_torchrl.algorithms.recipes import SAC, Recipe
from rlcore_plugin_torchrl.protocols import OfflineAndOnline
from rlcore_plugin_torchrl.states import complete

if TYPE_CHECKING:
    from rlcore_plugin_torchrl.algorithms.arguments import OfflineToOnlineArguments


class MixedReplay(TrainerHookBase):
    """Puts batches into the online part of a buffer, and samples sub-batches from both parts.

    Args:
        buffer: an `OfflineToOnlineReplayBuffer` of TorchRL.
        batch_size: of a sub-batch; default: the buffer's.
        device: where sub-batches go.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"pre_epoch": "extend", "process_optim_batch": "sample"}
    )
    default_name: ClassVar[str] = "replay_buffer"

    def __init__(self, buffer: Any, batch_size: int | None, device: Any) -> None:
        self.replay_buffer = complete(buffer)
        self.batch_size = batch_size
        self.device = device
        self._keys: list[Any] | None = None

    def extend(self, batch: Any) -> Any:
        """Put the steps of a batch into the buffer, with the entries that the offline data have."""
        mask = batch.get(MASK, None)
        batch = batch.reshape(-1) if mask is None else batch[mask]
        keys = self._offline_keys()
        if keys is not None:
            batch = batch.select(*keys, strict=False)
        elif "collector" in batch.keys():  # noqa: SIM118 - a TensorDict is iterated over its rows
            batch = batch.exclude("collector")
        batch = batch.cpu()
        self.replay_buffer.extend(batch)
        return batch

    def sample(self, batch: Any = None) -> Any:
        """Return a sub-batch; what is handed in is not used."""
        drawn = self.replay_buffer.sample(self.batch_size)
        return drawn if self.device is None else drawn.to(self.device)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the buffer, and the entries of the offline data: looking again would sample from it."""
        return {"replay_buffer": self.replay_buffer.state_dict(), "keys": self._keys}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set them."""
        self.replay_buffer.load_state_dict(state_dict["replay_buffer"])
        self._keys = state_dict["keys"]

    def _offline_keys(self) -> list[Any] | None:
        offline = self.replay_buffer.offline_buffer
        if self._keys is None and len(offline):
            self._keys = list(offline.sample(1).keys(include_nested=True, leaves_only=True))
        return self._keys


class OfflineToOnlineTrainer(SACTrainer):
    """Soft actor-critic on offline data and, more and more, on what it collects.

    Args:
        replay_buffer: an `OfflineToOnlineReplayBuffer` of TorchRL.
        anneal_frames: frames after which no offline data are used; default: `total_frames`; 0 to use them for ever.
        batch_size: of a sub-batch; default: the buffer's.
        arguments: those of `SACTrainer`.

    Raises:
        ConfigError: another buffer, or a collector in the background.
    """

    recipe: ClassVar[Recipe] = Recipe({**SAC.options, "anneal_frames": None}, keys=SAC.keys)

    def __init__(
        self, *, collector: Any, total_frames: int | None, **arguments: Unpack[OfflineToOnlineArguments]
    ) -> None:
        replay_buffer = arguments.get("replay_buffer")
        lacks = missing(replay_buffer, OfflineAndOnline)
        if lacks:
            raise ArgumentTypeError(
                f"{type(self).__name__}: replay_buffer is a {type(replay_buffer).__name__}, which has no {lacks[0]}; "
                "it requires an OfflineToOnlineReplayBuffer"
            )
        if arguments.get("async_collection"):
            raise ConfigError(f"{type(self).__name__}: the collector cannot run in the background; leave it out")
        keywords: dict[str, Any] = {**arguments}
        self._sub_batch = keywords.pop("batch_size", None)
        super().__init__(collector=collector, total_frames=total_frames, **keywords)

    def register_replay(self, buffer: Any) -> Any:
        """Extend the online part, sample from both, and save the buffer."""
        self._anneal_frames = self.options["anneal_frames"]
        if self._anneal_frames is None:
            self._anneal_frames = self.total_frames or 0
        hook = MixedReplay(buffer, self._sub_batch, storage_device(buffer.online_buffer))
        hook.register(self)
        return hook

    def register_sending(self) -> None:
        """Send the weights of the policy, and sample fewer offline data."""
        super().register_sending()
        if self._anneal_frames > 0:
            self.register_op("post_steps", self._anneal)

    def _anneal(self) -> None:
        self.replay_buffer.anneal(self.collected_frames, self._anneal_frames)


OfflineToOnlineTrainer.__init__.__signature__ = signature_of(OfflineToOnlineTrainer.recipe)  # type: ignore[attr-defined]
