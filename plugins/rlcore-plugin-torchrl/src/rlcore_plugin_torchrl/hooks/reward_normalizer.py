"""Normalises rewards by statistics that forget slowly."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pydantic import BaseModel, Field

from rlcore import Minibatch
from rlcore.errors import HookError
from rlcore.types import Context, Key
from rlcore_plugin_torchrl.hooks.entries import REWARD, as_key, entry, valid_entry
from rlcore_plugin_torchrl.hooks.stock import StockHook

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor


class RewardNormalizer(StockHook):
    """Turns rewards into `(reward - mean) / std * scale` as minibatches are sampled.

    Mean and standard deviation are of all rewards so far, those of a batch weighted with `decay` to the power of the
    batches since.

    Args:
        decay: of the weight of earlier rewards, per batch.
        scale: of the normalised rewards.
        eps: the least variance; default: the machine epsilon of torch's default dtype.
        log_pbar: accepted for scripts that pass it; nothing is logged.
        reward_key: of the rewards; default: `("next", "reward")`.

    Attributes:
        statistics: `sum`, `ssq` (of squares), `count`, `mean`, `var` and `std`; empty before the first batch.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"batch_process": "update_reward_stats", "process_optim_batch": "normalize_reward"}
    )
    default_name: ClassVar[str] = "reward_normalizer"

    def __init__(
        self,
        decay: float = 0.999,
        scale: float = 1.0,
        eps: float | None = None,
        log_pbar: bool = False,
        reward_key: Key | None = None,
    ) -> None:
        self.decay = decay
        self.scale = scale
        self.eps = torch.finfo(torch.get_default_dtype()).eps if eps is None else eps
        self.log_pbar = log_pbar
        self.reward_key: Key = REWARD if reward_key is None else reward_key
        self.statistics: dict[str, Any] = {}

    @torch.no_grad()
    def update_reward_stats(self, batch: TensorDict) -> None:
        """Take the rewards of the valid steps of a batch in.

        Raises:
            HookError: the batch has no rewards, or no valid step.
        """
        reward = valid_entry(batch, self.reward_key, self)
        if not reward.numel() and not self.statistics:
            raise HookError("RewardNormalizer: the first batch has no valid step")
        previous = self.statistics
        total = self.decay * previous.get("sum", 0.0) + reward.sum()
        squares = self.decay * previous.get("ssq", 0.0) + reward.pow(2).sum()
        count = self.decay * previous.get("count", 0.0) + reward.numel()
        var = (squares - total.pow(2) / count) / (count - 1) if count > 1 else torch.zeros_like(total)
        std = var.clamp_min(self.eps).sqrt()
        self.statistics = {
            "sum": total,
            "ssq": squares,
            "count": count,
            "mean": total / count,
            "var": var,
            "std": std,
        }

    def normalize_reward(self, tensordict: Any) -> Any:
        """Return a minibatch with normalised rewards; a TensorDict that is handed in stays as it is.

        Raises:
            HookError: it has no rewards, or no batch was taken in before.
        """
        reward = entry(tensordict, self.reward_key, self)
        if not self.statistics:
            raise HookError(
                "RewardNormalizer: no rewards were taken in so far; register update_reward_stats at 'batch_process'"
            )
        normalized = self._normalized(reward)
        if isinstance(tensordict, Minibatch):
            tensordict[self.reward_key] = normalized
            return tensordict
        return tensordict.clone(recurse=False).set(self.reward_key, normalized)

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics, the decay and the scale."""
        return {"statistics": dict(self.statistics), "decay": self.decay, "scale": self.scale}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set them; tensors are copied, since those of a checkpoint may be mapped files."""
        self.statistics = {
            name: value.clone() if isinstance(value, torch.Tensor) else value
            for name, value in state_dict["statistics"].items()
        }
        self.decay, self.scale = state_dict["decay"], state_dict["scale"]

    def _normalized(self, reward: Tensor) -> Tensor:
        mean, std = (self.statistics[name].to(reward.device) for name in ("mean", "std"))
        normalized: Tensor = (reward - mean) / std * self.scale
        return normalized


class RewardNormalizerConfig(BaseModel, extra="forbid"):
    """How rewards are normalised."""

    decay: float = Field(0.999, gt=0, le=1, description="of the weight of earlier rewards, per batch")
    scale: float = Field(1.0, gt=0, description="of the normalised rewards")
    eps: float | None = Field(None, gt=0, description="least variance; none: the machine epsilon")
    reward_key: str | list[str] = Field(["next", "reward"], description="the entry with the rewards")


def from_config(config: RewardNormalizerConfig, context: Context) -> Any:
    """Return the hook of a config."""
    return RewardNormalizer(**{**dict(config), "reward_key": as_key(config.reward_key)}).as_component()
