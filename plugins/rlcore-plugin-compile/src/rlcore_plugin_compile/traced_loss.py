"""A loss as a function of tensors alone: what it reads, returns and changes, found out without leaving a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.learners import holds, total_loss
from rlcore.types import Key


class TracedLoss:
    """What a loss does when it is asked for some of its losses.

    One call finds it out. The call works on copies of the buffers, such as the running statistics of a normalisation,
    and the global generators are as before it.

    Args:
        loss: a module that contains the model's parts.
        names: what it is asked for; None for one that computes all.
        minibatch: entries by key, with the noise.
        minimised: for each optimizer that steps the losses that it minimises, empty for all.
        parameters: those of each optimizer that steps, by its name.

    Attributes:
        keys: the entries that it reads.
        returned: the names of what it returns, in its order.
        moving: the names of the buffers that it changes.
        apart: whether no optimizer's losses have gradients to the parameters of another. One backward pass of their sum
            then gives each the gradients of its own.

    Raises:
        ConfigError: it returns nothing to minimise, or what depends on no parameter of an optimizer.
    """

    def __init__(
        self,
        loss: nn.Module,
        names: tuple[str, ...] | None,
        minibatch: Mapping[Key, Tensor],
        minimised: Sequence[tuple[str, ...]],
        parameters: Mapping[str, list[Tensor]],
    ) -> None:
        self._loss = loss
        self._names = names
        self._also = _further_places(loss)
        recorder = _Recorder(minibatch)
        buffers = {name: buffer.clone() for name, buffer in loss.named_buffers()}
        device = next(iter(parameters.values()))[0].device
        with torch.enable_grad(), torch.random.fork_rng([device] if device.type == "cuda" else []):
            losses = self.computed(recorder, buffers)
            self.apart = _are_apart([total_loss(losses, chosen) for chosen in minimised], parameters)
        self.keys = tuple(recorder.read)
        self.returned = tuple(losses)
        self.moving = tuple(name for name, now in loss.named_buffers() if not torch.equal(now, buffers[name]))

    def computed(self, minibatch: Mapping[Key, Tensor], tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return losses and metrics, with other tensors in the place of parameters and buffers."""
        arguments = (minibatch,) if self._names is None else (minibatch, self._names)
        tensors = tensors | {place: tensors[name] for place, name in self._also.items() if name in tensors}
        # torch's own way with shared weights puts back the wrong tensors where two parts have one module in common
        return torch.func.functional_call(self._loss, tensors, arguments, tie_weights=False)  # type: ignore[no-any-return]


def _further_places(loss: nn.Module) -> dict[str, str]:
    """Return where modules hold a parameter or buffer that another module has too, each with its name in the loss."""
    names: dict[int, str] = {}
    further: dict[str, str] = {}
    for path, module in loss.named_modules():  # each module once, by the name of its first place
        for name, tensor in (*module.named_parameters(path, recurse=False), *module.named_buffers(path, recurse=False)):
            if names.setdefault(id(tensor), name) != name:
                further[name] = names[id(tensor)]
    return further


class _Recorder(dict[Key, Tensor]):
    """Entries that note which of them were read."""

    def __init__(self, minibatch: Mapping[Key, Tensor]) -> None:
        super().__init__()
        self._minibatch: Any = minibatch
        self.read: dict[Key, None] = {}

    def __missing__(self, key: Key) -> Tensor:
        self.read[key] = None
        return self._minibatch[key]  # type: ignore[no-any-return]

    def __contains__(self, key: object) -> bool:
        return holds(self._minibatch, key)

    def get(self, key: Key, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401 - this is `get`


def _are_apart(totals: list[Tensor], parameters: Mapping[str, list[Tensor]]) -> bool:
    """Return whether each total has gradients to the parameters of its own optimizer alone."""
    apart = True
    everything = [parameter for several in parameters.values() for parameter in several]
    for (name, several), total in zip(parameters.items(), totals, strict=True):
        gradients: Sequence[Tensor | None] = [None] * len(everything)
        if total.requires_grad:
            gradients = torch.autograd.grad(total, everything, retain_graph=True, allow_unused=True)
        reached = {id(parameter) for parameter, value in zip(everything, gradients, strict=True) if value is not None}
        ids = {id(parameter) for parameter in several}
        if not reached & ids:
            raise ConfigError(
                f"[optimizer] {name!r}: the losses depend on none of its {len(ids)} parameters, so it has no step to "
                "take; build it over those of the loss"
            )
        apart = apart and reached <= ids
    return apart
