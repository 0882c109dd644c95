"""Samples a part of each batch at random."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pydantic import BaseModel, Field

from rlcore import Minibatch
from rlcore.errors import HookArgumentError, HookError
from rlcore.types import Context
from rlcore_plugin_torchrl.hooks.entries import valid_mask
from rlcore_plugin_torchrl.hooks.stock import StockHook

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor


class BatchSubSampler(StockHook):
    """Samples a sub-batch: single steps of a batch `[step]`, windows of consecutive steps of a batch `[..., time]`.

    Of a batch with more than one dimension it samples `batch_size // sub_traj_len` windows, of trajectories sampled
    with replacement, and every window of a trajectory is equally likely. Where there is a mask, windows end before the
    padding, and become as short as the shortest trajectory, but not shorter than `min_sub_traj_len`; trajectories
    shorter than a window are left out.

    Args:
        batch_size: steps of the sub-batch.
        sub_traj_len: steps of a window; 0 for whole trajectories.
        min_sub_traj_len: the least steps of a window.
        generator: from which to sample; default: torch's global one.

    Raises:
        HookError: `batch_size` is not positive.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"process_optim_batch": "__call__"})
    default_name: ClassVar[str] = "batch_subsampler"

    def __init__(
        self,
        batch_size: int,
        sub_traj_len: int = 0,
        min_sub_traj_len: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        if batch_size < 1:
            raise HookArgumentError(f"BatchSubSampler: batch_size = {batch_size}: expected a positive number of steps")
        self.batch_size = batch_size
        self.sub_traj_len = sub_traj_len
        self.min_sub_traj_len = min_sub_traj_len
        self.generator = generator

    def __call__(self, batch: Any) -> Any:
        """Return a sub-batch `[batch_size]` of a batch `[step]` or a minibatch, or `[window, time]` of a TensorDict.

        Raises:
            HookError: no window fits into the batch or into `batch_size`, or padding lies between valid steps.
        """
        if len(batch.batch_size) == 0:
            raise HookError("BatchSubSampler: the batch has no dimension from which to sample steps")
        if len(batch.batch_size) > 1:
            return self._windows(batch.reshape(-1, batch.batch_size[-1]))
        order = torch.randperm(batch.batch_size[0], generator=self.generator, device=self._device)
        chosen = order[: self.batch_size]
        if not isinstance(batch, Minibatch):
            return batch[chosen]
        return Minibatch(len(chosen), tuple(batch.keys()), lambda key: batch[key][chosen.to(batch[key].device)])

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator; the global one is saved by the trainer."""
        return {} if self.generator is None else {"generator": self.generator.get_state()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the state of the generator."""
        if self.generator is not None:
            self.generator.set_state(state_dict["generator"].cpu().clone())

    @property
    def _device(self) -> torch.device:
        return torch.device("cpu") if self.generator is None else self.generator.device

    def _windows(self, batch: TensorDict) -> TensorDict:
        """Return windows `[window, time]` of a batch `[trajectory, time]`."""
        rows, steps = batch.batch_size
        mask = valid_mask(batch)
        lengths = torch.full((rows,), steps) if mask is None else mask.sum(-1).cpu()
        wanted = self.sub_traj_len if self.sub_traj_len > 0 else steps
        if mask is not None:
            wanted = max(self.min_sub_traj_len, min(wanted, int(lengths.min())))
        self._check(wanted, lengths)
        long_enough = torch.nonzero(lengths >= wanted).squeeze(-1)
        count = self.batch_size // wanted
        drawn = torch.randint(len(long_enough), (count,), generator=self.generator, device=self._device).cpu()
        row = long_enough[drawn]
        start = torch.zeros(count, dtype=torch.long)
        if wanted < steps:
            start = self._starts(lengths[row] - wanted + 1)
        time = start.unsqueeze(-1) + torch.arange(wanted)
        device = batch.device or torch.device("cpu")
        windows = batch[row.unsqueeze(-1).to(device), time.to(device)]
        if mask is not None and not valid_mask(windows).all():  # type: ignore[union-attr]
            raise HookError("BatchSubSampler: the mask has padding between valid steps; it must come at the end")
        return windows

    def _starts(self, choices: Tensor) -> Tensor:
        """Return for each window where it begins, below the number of its choices."""
        drawn = torch.rand(choices.shape, generator=self.generator, device=self._device).cpu() * choices
        return torch.minimum(drawn.long(), choices - 1)  # rounding could reach the number itself

    def _check(self, wanted: int, lengths: Tensor) -> None:
        if wanted < 1:
            raise HookError("BatchSubSampler: a trajectory of the batch has no valid step; set min_sub_traj_len")
        if int(lengths.max()) < wanted:
            raise HookArgumentError(
                f"BatchSubSampler: windows of {wanted} steps, and the longest trajectory of the batch has "
                f"{int(lengths.max())}; make sub_traj_len or min_sub_traj_len smaller"
            )
        if self.batch_size < wanted:
            raise HookArgumentError(
                f"BatchSubSampler: batch_size = {self.batch_size} steps are fewer than one window of {wanted}; "
                "batch_size counts all steps of the sub-batch"
            )


class BatchSubSamplerConfig(BaseModel, extra="forbid"):
    """How much of each minibatch is used."""

    batch_size: int = Field(ge=1, description="samples of a minibatch to take, without replacement")


def from_config(config: BatchSubSamplerConfig, context: Context) -> Any:
    """Return the hook of a config."""
    return BatchSubSampler(config.batch_size, generator=context.generator()).as_component()
