"""What a loss is, and what it may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlcore.types.part import Part

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from rlcore.types.records import Key


class Loss(Part, ABC):
    """A `torch.nn.Module` from a minibatch to named scalars; written as `class MyLoss(torch.nn.Module, Loss)`.

    Its parameters are those of the model. Called once per update, in the process that trains, with gradients on. With a
    compiled update it is traced, once per size of a minibatch and what is asked for: it then reads the same keys and
    returns the same names every time, and does nothing that depends on the values of tensors.

    A loss that names its losses in `loss_names` is called `loss(minibatch, names)`. The learner asks for those whose
    optimizers step in the update (`[[optimizer]] every`); the others cost nothing. The loss returns these, each with
    the value and the gradients that it has when all are asked for, and the metrics that come with them, so that the
    keys depend on `names` alone. What a buffer reads, `td_error`, comes with the loss of the critics. Whatever the
    optimizers are, the loss of an actor gives no gradient to the critics, and the other way round.

    Attributes:
        requires: the parts of the model that it uses.
        reads: the entries without which it cannot be computed, such as `("observation", ("next", "reward"))`. A run in
            which no part writes one of them is refused before its first frame. None for a loss that does not say.
        loss_names: every `loss_*` that it returns, in its order. Empty for a loss that takes a minibatch alone, and
            computes all of them every time.
        in_turn: whether the losses of `loss_names` follow one another within an update. The optimizers that are due
            then step in the order of their losses, and each loss is computed at the weights that the step before it
            left, as of an actor that follows the critics of the same update. Optimizers that name no losses step
            together.
        sides: the names of `loss_names` that one thread computes, for each thread; empty where all belong to one.
            What is computed for one side reads the minibatch and the weights, writes nothing that another side reads,
            and draws nothing from the global generators. What has much in common, as the objective of an actor and its
            entropy, is one side. That sides share no parameters is seen by the learner.
        trains: by the name of a loss, the parts of the model to which it has gradients; it has none to other parts. An
            optimizer that minimises a loss by name, and moves none of these parts, is refused before the first frame.
        gives_td_error: whether it returns `td_error`; False is refused by a buffer that needs it, before the first
            frame. None for a loss that does not say.
        target_updater: moves target networks, such as a `rlcore.learners.TargetUpdater`. The learner calls its
            `step()` after each optimisation step, and saves its state. None where nothing has to be moved.

    Called in `plugins/rlcore-plugin-gradient/src/rlcore_plugin_gradient/learner.py`:

        losses = self._loss(turn.entries) if names is None else self._loss(turn.entries, names)
        losses = hooks.post_loss(losses, turn.minibatch, self)
    """

    requires: tuple[str, ...]
    reads: Sequence[Key] | None = None
    loss_names: tuple[str, ...] = ()
    in_turn: bool = False
    sides: tuple[tuple[str, ...], ...] = ()
    trains: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    gives_td_error: bool | None = None
    target_updater: Any = None

    @abstractmethod
    def __call__(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return the losses of a minibatch, and metrics.

        Args:
            minibatch: entries `[sample, ...]` by key, on the run's device. An entry is gathered when it is read; a key
                that nothing writes is an `UnwrittenEntryError`. Not to be changed.

        Returns:
            New 0-d tensors by name, the same names every time. Those named `loss_*` are summed and minimised; the
            others are metrics, detached. One other shape is known: `td_error` `[sample, 1]`, which a prioritized buffer
            reads in its `feedback`. A value that is not finite skips the update and ends the run.
        """
        ...

    def sample_noise(self, samples: int, generator: torch.Generator) -> Mapping[Key, Tensor]:
        """Return the random entries of a minibatch, such as the noise of the actions of SAC; called once per update.

        The learner saves the generator, and adds the entries to the minibatch for the loss alone. The loss reads them,
        as in `minibatch["noise"]`, and samples nothing itself: so a compiled update, a resume and every process of
        several sample as they should. The `Trainer` of a script refuses a loss that defines this method.

            return {"noise": torch.randn(samples, 2, generator=generator, device=generator.device)}

        Args:
            samples: rows of the minibatch.
            generator: the only source of randomness.

        Returns:
            Entries of any shape, on the generator's device, with names that the minibatch has not.
        """
        return {}
