"""What the losses of actors and critics share: the target of the critics, their error, dropout, paces of targets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import torch
from pydantic import Field
from rlcore_plugin_replay.sequence_keys import READ
from rlcore_plugin_replay.td_errors import WEIGHT
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.learners import TargetConfig, TargetUpdater
from rlcore.types import Context, Key, Loss, has_memory, offers
from rlcore_plugin_sac.critics import Critics
from rlcore_plugin_sac.entropy import TRAINS
from rlcore_plugin_sac.sequences import SequenceRows, Unrolled

# what every loss here reads of a minibatch
TRANSITION: Final[tuple[Key, ...]] = (
    "observation",
    "action",
    ("next", "observation"),
    ("next", "reward"),
    ("next", "terminated"),
)


IN_TURN: Final = (
    "each loss at the weights that the step of the one before left, as of an actor that follows the critics of the "
    "same update; false: all at equal weights, so that several cores may compute them at the same time"
)


class ActorCriticConfig(TargetConfig):
    """What the losses share."""

    target_interval: int = Field(1, ge=1, description="optimisation steps between two updates of the targets")
    target_tau: float = Field(0.005, gt=0, le=1, description="how far an update moves the targets: 1 copies")
    gamma: float = Field(0.99, ge=0, le=1, description="discount")
    in_turn: bool = Field(False, description=IN_TURN)


class ActorCriticLoss(nn.Module, Loss):
    """Holds the networks, moves the targets, and takes the critics' error.

    Of a model with memory, minibatches are sequences, as the buffer `replay:sequences` has them: each memory goes
    through them once, from the state that was stored, and rows that are masked do not count. A subclass that asks
    `at` for its heads and what they see, and `mean` for means, has no line for it but `takes_memory = True`.

    Attributes:
        takes_memory: whether it knows models with memory.
        takes_quantiles: whether it knows critics that give quantiles.
        burn_in: with memory, rows at the beginning of each sequence that are not trained on; set by the buffer.
        target_updater: moves the targets, called by the learner.
        loss_names: every loss that it returns.
        trains: by loss, the parts that it trains.
        sides: the losses that may be computed at the same time, as none moves what another does.
        in_turn: whether they are taken one after the other instead.
        error_scale: times the squared error of the critics.
    """

    loss_names: tuple[str, ...] = ("loss_critics", "loss_actor")
    trains = TRAINS
    sides: tuple[tuple[str, ...], ...] = (("loss_critics",), ("loss_actor", "loss_temperature"))
    error_scale: ClassVar[float] = 1.0
    takes_memory: bool = False
    takes_quantiles: bool = False
    reads: tuple[Key, ...] = TRANSITION

    def __init__(self, config: ActorCriticConfig, context: Context, pairs: Sequence[tuple[str, str]]) -> None:
        """Keep the model's parts.

        Args:
            config: of the loss.
            context: of the loss.
            pairs: names of parts and of their targets.

        Raises:
            ConfigError: the model has a memory, and parts that cannot be run over sequences; or its critics give
                quantiles.
        """
        super().__init__()
        model: Any = context.model
        self.actor = model.actor
        self.critics: Critics = model.critics
        self.target_critics: Critics = model.target_critics
        self._quantiles: int = getattr(self.critics, "quantiles", 1)  # critics of somebody else may not say
        if self._quantiles > 1 and not self.takes_quantiles:
            raise ConfigError(
                f"[model] quantiles = {self._quantiles}: the loss {context.name} takes one value of each critic; "
                'leave the key out, or set [loss] use = "tqc"'
            )
        moved = [(getattr(model, source), getattr(model, target)) for source, target in pairs]
        self.target_updater = TargetUpdater(moved, config.target_interval, config.target_tau)
        self._box = model.box
        self._dropout = float(model.dropout)
        self._gamma = config.gamma
        self.in_turn = config.in_turn
        self._remembers = self.takes_memory and has_memory(model)
        if self._remembers:
            self._begin_sequences(model, ["actor", *(name for pair in pairs for name in pair)])

    def _begin_sequences(self, model: Any, names: Iterable[str]) -> None:
        """Read sequences from now on."""
        for name in names:
            part: Any = getattr(model, name)
            if not offers(part, Unrolled):
                raise ConfigError(
                    f"[loss] {type(self).__name__}: the model has a memory, but its part {name!r} does not say what it "
                    "knows along a sequence (head, known, after); take the model sac:recurrent-actor-critic"
                )
        self.burn_in = 0
        self.reads = READ

    def forward(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None = None) -> dict[str, Tensor]:
        """Return the losses that are asked for, all of them by default, and their metrics."""
        if not self._remembers:
            return self.losses(minibatch, names)
        rows = SequenceRows(minibatch, self.burn_in)
        result = self.losses(rows, names)
        if "td_error" in result:
            result["td_error"] = rows.over_time(result["td_error"])
        return result

    def losses(self, minibatch: Mapping[Key, Tensor], names: Collection[str] | None) -> dict[str, Tensor]:
        """Return the losses that are asked for and their metrics.

        Args:
            minibatch: entries `[sample, ...]`.
            names: the losses; None for all.
        """
        raise NotImplementedError

    def at(
        self, name: str, minibatch: Mapping[Key, Tensor], following: bool = False, moved: bool = True
    ) -> tuple[Any, Tensor]:
        """Return the head of a part, and what it sees, `[sample, ...]`: observations, or what its memory knows.

        Args:
            name: of the part.
            minibatch: that `losses` was given.
            following: of the observations that follow; what a memory knows of them has no gradient.
            moved: whether the memory has gradients of the loss.
        """
        part: Any = getattr(self, name)
        if self._remembers:
            rows: Any = minibatch
            return part.head, rows.known(name, part, following, moved)
        return part, minibatch["next", "observation"] if following else minibatch["observation"]

    def mean(self, values: Tensor, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the mean over the samples that count of values `[..., sample, 1]`, 0-d."""
        rows: Any = minibatch
        return rows.mean(values) if self._remembers else values.mean()

    def _masks(self, samples: int, generator: torch.Generator) -> dict[Key, Tensor]:
        """Return what dropout leaves, by hidden layer: `[use, critic, sample, size]`, of 0 and `1 / (1 - rate)`.

        The three uses are the target, the critics' loss and the actor's loss (Hiraoka et al., 2022, arXiv 2110.02034,
        algorithm 2).
        """
        if not self._dropout:
            return {}
        kept = 1 - self._dropout
        shape = (3, self.critics.critics, samples)
        return {
            f"dropout_{index}": torch.empty(*shape, size, device=generator.device)
            .bernoulli_(kept, generator=generator)
            .div_(kept)
            for index, size in enumerate(self.critics.hidden)
        }

    def _dropped(self, minibatch: Mapping[Key, Tensor], use: int) -> list[Tensor] | None:
        """Return the masks of one use, `[critic, sample, size]` of each hidden layer; None without dropout."""
        if not self._dropout:
            return None
        return [minibatch[f"dropout_{index}"][use] for index in range(len(self.critics.hidden))]

    def _returns(self, minibatch: Mapping[Key, Tensor], following: Tensor) -> Tensor:
        """Return the reward and the discounted value that follows, `[sample, 1]`."""
        return returns(minibatch, self._gamma, following)

    def _critics_loss(self, minibatch: Mapping[Key, Tensor], target: Tensor) -> dict[str, Tensor]:
        """Return the sum over the critics of the mean squared error, weighted where a buffer has weights; and metrics.

        Args:
            minibatch: entries.
            target: `[sample, 1]`.
        """
        return critics_loss(minibatch, self._values(minibatch), target, self.error_scale)

    def _values(self, minibatch: Mapping[Key, Tensor]) -> Tensor:
        """Return the critics' values of the actions that were taken, `[critic, sample, quantile]`."""
        unit = self._box.to_unit(minibatch["action"])
        critics, inputs = self.at("critics", minibatch)
        return critics.values(inputs, unit, masks=self._dropped(minibatch, 1))  # type: ignore[no-any-return]


def asked(name: str, names: Collection[str] | None) -> bool:
    """Return whether a loss is among those asked for; None asks for all."""
    return names is None or name in names


def critics_loss(minibatch: Mapping[Key, Tensor], values: Tensor, target: Tensor, scale: float) -> dict[str, Tensor]:
    """Return the sum over the critics of the mean squared error, weighted where a buffer has weights; and metrics.

    Args:
        minibatch: entries; of sequences, means are over the samples that are trained on.
        values: `[critic, sample, 1]`.
        target: `[sample, 1]`.
        scale: times the loss.

    Returns:
        `loss_critics`, and detached the mean `q_value` and `td_error`, the largest absolute error `[sample, 1]`.
    """
    errors = target - values
    with torch.no_grad():
        metrics = {"q_value": mean_value(values, minibatch), "td_error": errors.abs().amax(0)}
    return {"loss_critics": sum_of_means(errors.square(), minibatch) * scale, **metrics}


def mean_value(values: Tensor, minibatch: Mapping[Key, Tensor]) -> Tensor:
    """Return the mean of values `[critic, sample, 1]`, 0-d."""
    return minibatch.mean(values.mean(0)) if isinstance(minibatch, SequenceRows) else values.mean()


def sum_of_means(errors: Tensor, minibatch: Mapping[Key, Tensor]) -> Tensor:
    """Return the sum over the critics of the means of their errors `[critic, sample, 1]`, weighted as they are, 0-d."""
    weight = minibatch.get(WEIGHT, None)
    if weight is not None:
        errors = errors * weight
    return minibatch.mean(errors.sum(0)) if isinstance(minibatch, SequenceRows) else errors.mean((1, 2)).sum()


def returns(minibatch: Mapping[Key, Tensor], gamma: float, following: Tensor) -> Tensor:
    """Return the reward and the discounted value that follows, `[sample, 1]`; over several steps, where joined.

    Args:
        minibatch: entries.
        gamma: the discount of one step.
        following: values after the transitions, `[sample, 1]`; those after a terminated step count as zero.
    """
    steps = minibatch.get("steps_to_next_obs", None)
    discount = gamma if steps is None else gamma**steps
    going = ~minibatch["next", "terminated"]
    return minibatch["next", "reward"] + discount * going * following
