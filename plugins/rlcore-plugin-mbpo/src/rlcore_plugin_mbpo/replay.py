"""The buffer of MBPO: a replay buffer, and beside its transitions those that a model of the env imagines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rlcore_plugin_replay.base import ReplayConfig
from rlcore_plugin_replay.buffer import ReplayBuffer
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.errors import ConfigError
from rlcore.types import Collector, Context, Key, defines
from rlcore_plugin_mbpo.config import ImaginationConfig
from rlcore_plugin_mbpo.imagination import Imagination

if TYPE_CHECKING:
    from tensordict import TensorDict

STATE = "imagination"


class ImaginedReplay(ReplayBuffer):
    """Replay whose minibatches are mostly imagined: short rollouts from real observations (Janner et al., 2019).

    At intervals the dynamics of the model learn from all that is kept, and rollouts of the policy of now fill a ring
    of their own. A minibatch has `real_share` real rows and else imagined ones; while there are none, real rows alone.
    Its entries are those of a transition: `observation`, `action`, and under `next` `observation`, `reward`, `done`,
    `terminated`, `truncated`.

    Attributes:
        hooks: what logs the figures of the dynamics and of the rollouts.
    """

    class Config(ImaginationConfig, ReplayConfig):
        """Size and use of the replay, the dynamics, and the rollouts."""

    _config: Config  # type: ignore[assignment]

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        _check_collector(context)
        self._imagination = Imagination(config, context)
        self.hooks = [self._imagination.figures]
        self.writes: tuple[Key, ...] = ()

    def minibatches(self, batch: TensorDict) -> Iterator[Minibatch]:
        """Yield as many minibatches as the config says, after training and imagining where it is due."""
        if len(self):
            self._imagination.refresh(self._real)
        yield from super().minibatches(batch)

    def state_dict(self) -> dict[str, Any]:
        """Return what a replay buffer has, and the state of the imagination."""
        return {**super().state_dict(), STATE: self._imagination.state_dict(rows=self._saves)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take both back."""
        super().load_state_dict(state)
        self._imagination.load_state_dict(state[STATE])

    def _draw(self, size: int) -> Minibatch:
        return self._imagination.draw(size, super()._draw)

    def _real(self) -> dict[Key, Tensor]:
        return {key: column[: len(self)] for key, column in self._ring.columns.items()}


def _check_collector(context: Context) -> None:
    if defines(context.built.get("collector"), Collector.steps_written):
        raise ConfigError(
            f"[buffer] {context.name} learns from what it holds between two iterations, and this collector fills it "
            'all the time; set [collector] use = "local" or another that hands over batches'
        )
