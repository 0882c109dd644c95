"""What fills a buffer beside its real transitions: the dynamics learn from these, and rollouts are imagined."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from rlcore_plugin_replay.layout import RowLayout
from rlcore_plugin_replay.ring import Ring
from rlcore_plugin_replay.storage import allocate
from torch import Tensor

from rlcore import hookimpl
from rlcore.buffers import Minibatch
from rlcore.errors import ConfigError, StorageError
from rlcore.types import Context, Key
from rlcore_plugin_mbpo.config import ImaginationConfig
from rlcore_plugin_mbpo.model import MBPOModel
from rlcore_plugin_mbpo.pace import Pace
from rlcore_plugin_mbpo.rollouts import ACTION, ENTRIES, NEXT, OBSERVATION, REWARD, TERMINATED, Rollouts, imagine
from rlcore_plugin_mbpo.training import DynamicsTraining, Learned, Rows

log = logging.getLogger(__name__)

Columns = Mapping[Key, Tensor]
_LEAST_ROWS: Final = 2  # one to learn from, one that is held out


class Imagination:
    """Trains the dynamics at their own pace, imagines rollouts at theirs, keeps the latest, and samples from them.

    Args:
        config: of the buffer.
        context: of the buffer; the model has `dynamics`.

    Raises:
        ConfigError: the model is another one, or several ranks train.
    """

    def __init__(self, config: ImaginationConfig, context: Context) -> None:
        model: Any = context.model
        _check(model, context)
        self._model: MBPOModel = model
        self._config = config
        self._progress, self._heart, self._device = context.progress, context.heart, context.device
        self._training = DynamicsTraining(model.dynamics, config, context)
        self._generator = context.generator("rollouts")
        self._learns, self._rolls = Pace(config.dynamics_every), Pace(config.rollouts_every)
        self._ring = Ring(config.imagined_capacity, self._allocate)
        self._warned = False
        self.figures = Figures()

    def refresh(self, real: Callable[[], Columns]) -> None:
        """Train and imagine, where it is due.

        Args:
            real: returns the real transitions, key to `[row, *shape]`; called where something is due.
        """
        if self._config.real_share == 1:
            return
        columns: Columns | None = None
        if self._learns.due(self._progress):
            columns = real()
            if columns[ACTION].shape[0] < _LEAST_ROWS:
                self._learns.next = None
                return
            learned = self._training(self._rows(columns))
            self.figures.learned(learned)
        if self._rolls.due(self._progress):
            self._roll(real() if columns is None else columns)

    def draw(self, size: int, real: Callable[[int], Minibatch]) -> Minibatch:
        """Return a minibatch: the real rows that its share gives it, then imagined ones, or real ones in their place.

        Args:
            size: samples in it.
            real: samples so many real rows.
        """
        rows = self._config.real_rows(size)
        if rows == size or not len(self._ring):
            return real(size)
        return _joined(real(rows), self._draw(size - rows)) if rows else self._draw(size)

    def state_dict(self, rows: bool = True) -> dict[str, Any]:
        """Return everything but the weights, which are the model's; without the transitions, it begins again."""
        state = {"training": self._training.state_dict(), "generator": self._generator.get_state()}
        if rows:
            state |= {"ring": self._ring.state_dict(), "learns": self._learns.next, "rolls": self._rolls.next}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take it back.

        Raises:
            StorageError: there is no room for the transitions, or they are those of another capacity.
        """
        saved, here = state.get("ring", {}).get("capacity"), self._config.imagined_capacity
        if saved not in (None, here):
            raise StorageError(
                f"the buffer of the checkpoint keeps {saved:,} imagined transitions, and this one {here:,}; "
                f"set [buffer] imagined_capacity = {saved}, or start it over with --fresh buffer"
            )
        self._training.load_state_dict(state["training"])
        self._generator.set_state(state["generator"])
        self._learns.next, self._rolls.next = state.get("learns"), state.get("rolls")
        if "ring" in state:
            self._ring.load_state_dict(state["ring"])
        else:
            self._ring = Ring(self._config.imagined_capacity, self._ring.allocate)

    def _draw(self, size: int) -> Minibatch:
        """Return so many imagined transitions, sampled uniformly and with replacement."""
        layout = self._ring.layout
        assert layout is not None
        index = torch.randint(len(self._ring), (size,), generator=self._generator, device=self._device)
        return Minibatch(size, layout.keys, layout.reader(self._ring.rows(index)))

    def _roll(self, columns: Columns) -> None:
        real = columns[OBSERVATION]
        count = self._config.rollouts
        index = torch.randint(real.shape[0], (count,), generator=self._generator, device=self._device)
        start = real[index.to(real.device)].to(self._device).float()
        length = self._config.length_at(self._progress.now)
        rollouts = imagine(self._model, start, length, self._config, self._generator, self._heart)
        self.figures.imagined(rollouts, length)
        self._warn_of_range(rollouts)
        if len(rollouts):
            made = rollouts.columns  # a hook may have left out what no loss reads
            kept = {key: made[key].to(columns[key].dtype) for key in ENTRIES if key in columns}
            if self._ring.layout is None:
                self._ring.begin(RowLayout.of(kept))
            self._ring.extend(kept)

    def _warn_of_range(self, rollouts: Rollouts) -> None:
        """Say once that most rollouts end outside of the data; the metrics say how many do at any time."""
        if self._warned or rollouts.left <= self._config.rollouts // 2:
            return
        self._warned = True
        log.warning(
            "%s of %s imagined rollouts left the range of the data and were cut there: the dynamics are not to be "
            "trusted yet. Raise [buffer] warmup_frames or record more data, shorten rollout_length, or, where the env "
            "does go there, raise range_margin",
            f"{rollouts.left:,}",
            f"{self._config.rollouts:,}",
        )

    def _rows(self, columns: Columns) -> Rows:
        """Return real transitions as the dynamics learn from them, on the device of the run."""
        names = (OBSERVATION, ACTION, NEXT, REWARD, TERMINATED)
        return Rows(*(columns[name].to(self._device).float() for name in names))

    def _allocate(self, shape: tuple[int, int]) -> Tensor:
        return allocate("device", shape, self._device, None)


class Figures:
    """A hook that logs what came of the latest training and rollouts; the buffer brings it.

    Attributes:
        internal: True; it belongs to the buffer, and no figures of hooks speak of it.
    """

    internal: Final = True

    def __init__(self) -> None:
        self._values: dict[str, float] = {}

    def learned(self, learned: Learned) -> None:
        """Take in a training."""
        self._values |= {"dynamics/error": learned.error, "dynamics/epochs": float(learned.epochs)}

    def imagined(self, rollouts: Rollouts, length: int) -> None:
        """Take in rollouts of at most so many steps."""
        rows, columns = len(rollouts), rollouts.columns
        self._values |= {"imagined/length": float(length), "imagined/transitions": float(rows)}
        self._values["imagined/left_range"] = rollouts.left / max(1, rows + rollouts.left)
        if rows:
            self._values["imagined/reward"] = float(columns[REWARD].mean())
            self._values["imagined/terminated"] = float(columns[TERMINATED].float().mean())
            self._values["imagined/penalty"] = rollouts.penalty

    @hookimpl
    def post_steps_log(self) -> dict[str, float] | None:
        """Return the figures of this iteration, if there are any."""
        values, self._values = self._values, {}
        return values or None


def _joined(real: Minibatch, imagined: Minibatch) -> Minibatch:
    """Return both as one minibatch; an entry is gathered when it is read."""
    size = real.size + imagined.size
    return Minibatch(size, tuple(imagined.keys()), lambda key: torch.cat([real[key], imagined[key]]))


def _check(model: Any, context: Context) -> None:
    if not isinstance(model, MBPOModel):
        raise ConfigError(
            f"[buffer] {context.name} imagines with a model that has dynamics, and this run has a "
            f'{type(model).__name__}; set [model] use = "mbpo"'
        )
    if context.group.size > 1:
        raise ConfigError(f"[buffer] {context.name}: the dynamics learn in one process; leave [ranks] out")
