"""The other toy parts: each the plainest thing that keeps the contract of its kind, as an example and for tests."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch
from pydantic import BaseModel, Field
from rlcore_plugin_gradient.inputs import inputs_of, mean_of
from torch import Tensor, nn

from rlcore.errors import ConfigError, StorageError
from rlcore.files.growing import GrowingFile
from rlcore.hooks.specs import hookimpl
from rlcore.loggers.base import LoggerBase
from rlcore.state.kinds import dtype_of
from rlcore.types import FIRST, POLICY_STATE, Checkpointer, Estimator, Key, Loss, has_memory
from rlcore.types.context import Context
from rlcore.types.models import part_of

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array, BoolArray, Env
    from rlcore.types.trainer import Trainer


class ToyTransform:
    """Subtracts the mean of every observation seen so far."""

    writes = ()

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        self._count = 0
        self._mean: Any = 0.0
        self._learning = True

    def observation_space(self, space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
        """Return an unbounded box of the same shape."""
        assert space.shape is not None
        return gymnasium.spaces.Box(-np.inf, np.inf, space.shape, np.float32)

    def fit(self, env: Env) -> None:
        """Start from the observations of a reset."""
        self._learn(env.reset(seed=0))

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return the observations less their mean."""
        if self._learning:
            self._learn(observation)
        return np.asarray(observation - self._mean, dtype=np.float32)

    def final(self, observation: Array, env_index: int) -> Array:
        """Return a last observation less the mean."""
        return np.asarray(observation - self._mean, dtype=np.float32)

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the batch as it is."""
        return batch

    def frozen(self) -> ToyTransform:
        """Return a copy that keeps its mean."""
        copied = copy.copy(self)
        copied._learning = False
        return copied

    def state_dict(self) -> dict[str, Any]:
        """Return the mean, and of how many observations it is."""
        return {"count": self._count, "mean": np.asarray(self._mean)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the mean."""
        self._count, self._mean = state["count"], np.array(state["mean"])

    def _learn(self, observation: Array) -> None:
        self._count += len(observation)
        self._mean = self._mean + (observation - self._mean).sum(0) / self._count


class ToyEstimator(Estimator):
    """The advantage of one step: `reward + gamma * V(next) - V`, without the middle term after a terminated step."""

    takes_memory = True

    class Config(BaseModel, extra="forbid"):
        """The discount."""

        gamma: float = Field(0.9, ge=0, le=1, description="discount")

        @property
        def discounts(self) -> bool:
            """False: a part that is tested beside it may have another discount, such as the default of its own."""
            return False

    def __init__(self, config: Config, context: Context) -> None:
        self.every = "batch"
        self._gamma = config.gamma
        self._critic = part_of(context.model, "critic")
        self._has_memory = has_memory(context.model)

    @torch.no_grad()
    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage` and `value_target`."""
        following = batch.get("next")
        value, next_value = self._values(batch, batch.get(FIRST, None)), self._values(following, None)
        target = following.get("reward") + self._gamma * next_value * ~following.get("terminated")
        batch.set("state_value", value)
        batch.set("value_target", target)
        batch.set("advantage", target - value)

    def _values(self, steps: TensorDict, first: Tensor | None) -> Tensor:
        """Return the values of observations, of which none that follows a step is the first of an episode."""
        if not self._has_memory:
            return self._critic(steps.get("observation"))  # type: ignore[no-any-return]
        rows = steps.flatten(0, 1)
        begins = torch.zeros_like(rows["reward"], dtype=torch.bool) if first is None else first.flatten(0, 1)
        return self._critic(rows["observation"], rows[POLICY_STATE], begins).unflatten(0, steps.batch_size)  # type: ignore[no-any-return]


class ToyLoss(nn.Module, Loss):
    """The policy gradient and the squared error of the critic."""

    requires = ("actor", "critic")
    reads = ("observation", "action", "advantage", "value_target")
    takes_memory = True

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        model: Any = context.model
        self.actor = model.actor
        self.critic = model.critic
        self._inputs, self._mean = inputs_of(model), mean_of(model)

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return `loss_actor`, `loss_critic` and the metric `error`."""
        inputs = self._inputs(minibatch)
        log_prob = self.actor.distribution.log_prob(self.actor(*inputs), minibatch["action"])
        error = self.critic(*inputs) - minibatch["value_target"]
        return {
            "loss_actor": -self._mean(log_prob * minibatch["advantage"], minibatch),
            "loss_critic": self._mean(error.square(), minibatch),
            "error": self._mean(error.detach().abs(), minibatch),
        }


class ToyHook:
    """Counts the iterations of the run, and keeps the context it was built with for tests to look at."""

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        self.context = context
        self.iterations = 0

    @hookimpl
    def post_steps(self, trainer: Trainer) -> None:
        """Count."""
        self.iterations += 1

    @hookimpl
    def post_steps_log(self) -> dict[str, float]:
        """Return the count."""
        return {"toy/iterations": float(self.iterations)}

    def state_dict(self) -> dict[str, Any]:
        """Return the count."""
        return {"iterations": self.iterations}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the count."""
        self.iterations = state["iterations"]


class ToyLogger(LoggerBase):
    """Writes `toy.jsonl` into the run folder: one `[step, metrics]` per line."""

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        if context.run.folder is None:
            raise ConfigError("the toy logger needs a run folder")
        super().__init__(context.run.name, str(context.run.folder))
        self.file = GrowingFile(context.run.folder / "toy.jsonl")

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Append a line."""
        self.file.append(json.dumps([step, dict(metrics)]).encode() + b"\n")
        self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def files(self) -> list[Path]:
        """Return the file."""
        return [self.file.path]

    def state_dict(self) -> dict[str, Any]:
        """Return the size of the file."""
        return self.file.position()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Cut the file back."""
        if difference := self.file.go_back(state):
            self._differs(difference)

    def begin_anew(self) -> None:
        """Begin with an empty file."""
        self.file.set_aside()


class ToyCheckpointer(Checkpointer):
    """Writes the bytes of all tensors into `tensors.bin`, and where they are into `index.json`."""

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        del config, context

    def save(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Write both files."""
        index: dict[str, Any] = {}
        content = bytearray()
        for name, tensor in tensors.items():
            plain = tensor.detach().cpu().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
            begin = len(content)
            content += plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
            index[name] = [begin, len(content), str(plain.dtype).removeprefix("torch."), list(plain.shape)]
        _write(folder / "tensors.bin", bytes(content))
        _write(folder / "index.json", json.dumps(index).encode())

    def load(self, folder: Path) -> dict[str, Tensor]:
        """Return copies of the tensors.

        Raises:
            StorageError: the files do not fit together.
        """
        try:
            content = (folder / "tensors.bin").read_bytes()
            index = json.loads((folder / "index.json").read_bytes())
            return {name: _read(content, *entry) for name, entry in index.items()}
        except (ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise StorageError(f"{folder} holds no tensors that can be read: {error}") from error


def _read(content: bytes, begin: int, end: int, dtype_name: str, shape: list[int]) -> Tensor:
    dtype = dtype_of(dtype_name)
    if begin == end:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(content[begin:end]), dtype=torch.uint8).view(dtype).reshape(shape)


def _write(file: Path, content: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
