"""Which tensors of another library become which tensor of a model here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rlcore.errors import StorageError

Join = Callable[[Sequence[Tensor]], Tensor]


def alone(tensors: Sequence[Tensor]) -> Tensor:
    """Return the one tensor."""
    (tensor,) = tensors
    return tensor


def number(tensors: Sequence[Tensor]) -> Tensor:
    """Return the one number, 0-d."""
    return alone(tensors).reshape(())


def first(tensors: Sequence[Tensor]) -> Tensor:
    """Return the first of tensors that are equal.

    Raises:
        StorageError: they are not.
    """
    if any(not torch.equal(tensor, tensors[0]) for tensor in tensors):
        raise StorageError("the critics have normalised different numbers of batches")
    return tensors[0]


def rows(tensors: Sequence[Tensor]) -> Tensor:
    """Return the rows of all, one after the other."""
    return torch.cat(list(tensors))


def weights_of_critics(tensors: Sequence[Tensor]) -> Tensor:
    """Return the weights `[outputs, inputs]` of each critic as one tensor `[critic, inputs, outputs]`."""
    return torch.stack([tensor.t() for tensor in tensors]).contiguous()


def rows_of_critics(tensors: Sequence[Tensor]) -> Tensor:
    """Return the numbers `[outputs]` of each critic as one tensor `[critic, 1, outputs]`."""
    return torch.stack([tensor[None] for tensor in tensors])


@dataclass(frozen=True)
class Piece:
    """A tensor of a model here.

    Attributes:
        ours: its name in the model.
        theirs: names of the tensors that it is made of.
        join: makes it; of their moments too.
    """

    ours: str
    theirs: tuple[str, ...]
    join: Join = alone

    def of(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Return the tensor.

        Raises:
            StorageError: one that it is made of is missing, or they do not fit together.
        """
        lacking = [name for name in self.theirs if name not in tensors]
        if lacking:
            raise StorageError(f"the model has no tensor {', '.join(map(repr, lacking))}")
        try:
            return self.join([tensors[name] for name in self.theirs])
        except (RuntimeError, ValueError) as error:
            raise StorageError(f"{', '.join(self.theirs)} do not fit together: {error}") from None


@dataclass(frozen=True)
class OptimizerLayout:
    """An optimizer of another library, and the section here that goes on with it.

    Attributes:
        section: name of the `[[optimizer]]` here.
        state: what `torch.optim.Optimizer.state_dict` returned there.
        parameters: names of its parameters there, in order.
    """

    section: str
    state: Mapping[str, Any]
    parameters: Sequence[str]


@dataclass
class Translation:
    """What a model of another library is here.

    Attributes:
        algorithm: its name there, such as `PPO`.
        library: that trained it.
        config: of the run.
        pieces: of the model.
        tensors: of the file, by their names there.
        optimizers: of the file.
        transforms: states of the transforms, by their names here.
        clocks: frames, updates and episodes so far.
        notes: what is not taken, or otherwise here.
        unused: names of tensors of the file that no network here needs.
        trains: whether the run can go on; else its policy acts and is exported.
        num_envs: that it was trained in.
        spaces: what the file says of observations and actions; see `spaces.py`.
    """

    algorithm: str
    library: str
    config: dict[str, Any]
    pieces: list[Piece]
    tensors: Mapping[str, Tensor]
    optimizers: list[OptimizerLayout] = field(default_factory=list)
    transforms: dict[str, Any] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unused: Sequence[str] = ()
    trains: bool = True
    num_envs: int = 1
    spaces: Mapping[str, Any] = field(default_factory=dict)


def layers(theirs: Sequence[str], ours: str, tensors: Mapping[str, Tensor]) -> list[Piece]:
    """Return the pieces of linear layers.

    Args:
        theirs: names of the layers there, in order.
        ours: name of the network here, which has them as `layers.NUMBER`.
        tensors: of the file.
    """
    return [
        Piece(f"{ours}.layers.{index}.{kind}", (f"{name}.{kind}",))
        for index, name in enumerate(theirs)
        for kind in ("weight", "bias")
        if f"{name}.{kind}" in tensors
    ]


def linear_layers(tensors: Mapping[str, Tensor], prefix: str) -> list[str]:
    """Return the names of the linear layers `PREFIX.NUMBER`, in order."""
    numbers = {
        int(rest)
        for name, tensor in tensors.items()
        if name.startswith(f"{prefix}.") and name.endswith(".weight") and tensor.ndim == 2
        if (rest := name[len(prefix) + 1 : -len(".weight")]).isdecimal()
    }
    return [f"{prefix}.{number}" for number in sorted(numbers)]


def outputs(tensors: Mapping[str, Tensor], names: Sequence[str]) -> list[int]:
    """Return the number of outputs of each layer."""
    return [int(tensors[f"{name}.weight"].shape[0]) for name in names]
