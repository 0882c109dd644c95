"""Replay buffers of TorchRL by name, each with a storage, a sampler and a writer of TorchRL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field, model_validator
from tensordict import TensorDict
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.errors import ConfigError, MissingPluginError
from rlcore.types import MASK, Buffer, Context, Key, offers
from rlcore_plugin_torchrl.parts.sections import PartConfig, built, called, checked_table
from rlcore_plugin_torchrl.parts.signatures import keywords_of
from rlcore_plugin_torchrl.protocols import OnDevice
from rlcore_plugin_torchrl.states import complete

_PARTS = ("storage", "sampler", "writer")


class TorchRLBuffer(Buffer):
    """A replay buffer of TorchRL by the name of its class.

    Attributes:
        buffer: of TorchRL.
        num_epochs: 1; `updates_per_batch` says how many minibatches follow a batch.
        warmup_frames: frames before the first update.
        takes_columns: False; TorchRL stores TensorDicts.
    """

    writes = ("index", "priority_weight")

    class Config(PartConfig):
        """Which buffer, and of which parts."""

        kind_of_part = "replay buffer"
        provided: ClassVar = {
            "storage": 'is a table: storage = { part = "LazyTensorStorage" }',
            "batch_size": "is called minibatch_size here",
            "generator": "follows from the seed of the run",
        }

        part: str = Field(
            "TensorDictReplayBuffer", description="class of TorchRL; further keys are its keyword arguments"
        )
        capacity: int = Field(100_000, ge=1, description="steps that are kept")
        minibatch_size: int = Field(128, ge=1, description="steps per update")
        updates_per_batch: int = Field(1, ge=1, description="updates after each collected batch")
        warmup_frames: int = Field(1000, ge=0, description="frames to collect before the first update")
        storage: dict[str, Any] = Field({"part": "LazyTensorStorage"}, description="where steps lie")
        sampler: dict[str, Any] = Field({"part": "RandomSampler"}, description="which are sampled")
        writer: dict[str, Any] = Field({"part": "TensorDictRoundRobinWriter"}, description="which are overwritten")

        @model_validator(mode="after")
        def _parts_fit(self) -> Any:
            try:
                for name in _PARTS:
                    checked_table(name, getattr(self, name), f"[buffer] {name}", {"max_size": 1, "max_capacity": 1})
            except (ConfigError, MissingPluginError) as error:
                raise ValueError(str(error)) from error
            return self

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self.num_epochs = 1
        self.warmup_frames = config.warmup_frames
        self._device = context.device
        part, sizes = config.part_class, {"max_size": config.capacity, "max_capacity": config.capacity}
        parts = {
            name: built(name, getattr(config, name), f"[buffer] {name}", sizes)
            for name in _PARTS
            if name in keywords_of(part).parameters
        }
        if "storage" not in parts:
            raise ConfigError(f"[buffer] part = {config.part!r}: this buffer of TorchRL takes no storage")
        # TorchRL draws the places of the rows where they lie, which is the CPU unless the storage is told otherwise
        place = parts["storage"].device if offers(parts["storage"], OnDevice) else "cpu"
        generator = torch.Generator(place).manual_seed(context.seed("sample"))
        own = {"batch_size": config.minibatch_size, "generator": generator}
        arguments = (
            parts
            | config.arguments("[buffer]")
            | {name: value for name, value in own.items() if name in keywords_of(part).parameters}
        )
        self.buffer: Any = complete(called(part, arguments, "[buffer]"))

    def most_updates(self, batch_steps: int) -> int:
        """Return how many minibatches follow a batch."""
        return self._config.updates_per_batch

    def add(self, batch: TensorDict) -> None:
        """Put the steps of a batch into the buffer."""
        mask = batch.get(MASK, None)
        steps = batch.reshape(-1) if mask is None else batch[mask.squeeze(-1)]
        begins = len(self.buffer) == 0
        self.buffer.extend(steps.exclude("collector").clone())
        data = vars(self.buffer.storage).get("_storage")
        if begins and isinstance(data, TensorDict):  # what is not written yet goes into checkpoints too
            data[len(self.buffer) :].zero_()

    def minibatches(self, batch: TensorDict) -> Iterator[Mapping[Key, Tensor]]:
        """Yield minibatches that the sampler of TorchRL chooses."""
        for _ in range(self._config.updates_per_batch):
            sample = self.buffer.sample(self._config.minibatch_size).to(self._device)
            yield Minibatch.of({key: sample.get(key) for key in sample.keys(True, True)})

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Set priorities by the errors of an update, where the sampler has any."""
        if "td_error" in values and "index" in minibatch:
            self.buffer.update_priority(minibatch["index"], values["td_error"].squeeze(-1))

    def state_dict(self) -> dict[str, Any]:
        """Return the steps, what the sampler and the writer know, and the place of the generator."""
        return {"buffer": self.buffer.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take all of it back."""
        self.buffer.load_state_dict(state["buffer"])
        storage = self.buffer.storage
        data = vars(storage).get("_storage")
        if isinstance(data, TensorDict) and not data.is_memmap():  # TorchRL gives it back without its device
            storage._storage = data.to(storage.device)
