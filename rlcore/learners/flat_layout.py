"""Where the gradients of several optimizers, their total losses and a count of rows lie in one flat vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import torch
from torch import Tensor

# float32 numbers in 64 bytes, the line of a cache: where kernels want tensors to begin
_ALIGNED: Final = 16


class FlatLayout:
    """The gradients of each optimizer, then the total loss of each, then the count; float32.

    Args:
        parameters: of each optimizer.

    Attributes:
        length: of the vector.
    """

    def __init__(self, parameters: Sequence[Sequence[Tensor]]) -> None:
        self._forms = [[(parameter.shape, _strides(parameter)) for parameter in several] for several in parameters]
        self._begins: list[list[int]] = []
        start = 0
        for several in parameters:
            self._begins.append([])
            for parameter in several:
                self._begins[-1].append(start)
                start += _room(parameter.numel())
        self._totals = start
        self.length = start + len(parameters) + 1

    def gradients_of(self, number: int, flat: Tensor) -> list[Tensor]:
        """Return for one optimizer a view of the vector for each of its parameters."""
        places = zip(self._forms[number], self._begins[number], strict=True)
        return [flat.as_strided(shape, strides, begin) for (shape, strides), begin in places]

    def total_of(self, number: int, flat: Tensor) -> Tensor:
        """Return the total loss of one optimizer, a 0-d view."""
        return flat[self._totals + number]

    def joined(
        self, gradients: Mapping[int, Sequence[Tensor]], totals: Mapping[int, Tensor], rows: int, flat: Tensor
    ) -> Tensor:
        """Return a vector of numbers that count as often as there are rows, for the compiler to write in one pass.

        Args:
            gradients: of some optimizers, by number; the others have zeros.
            totals: of the same ones, 0-d.
            rows: the count.
            flat: says where it lies.
        """
        pieces: list[Tensor] = []
        for number, forms in enumerate(self._forms):
            if number not in gradients:
                pieces.append(flat.new_zeros(sum(_room(shape.numel()) for shape, _ in forms)))
                continue
            for gradient, (shape, strides) in zip(gradients[number], forms, strict=True):
                order = sorted(range(len(shape)), key=lambda dim: -strides[dim])
                pieces.append(gradient.permute(order).reshape(-1).to(flat.dtype))
                if padding := _room(shape.numel()) - shape.numel():
                    pieces.append(flat.new_zeros(padding))
        none = flat.new_zeros(())
        pieces.append(torch.stack([totals.get(number, none).to(flat.dtype) for number in range(len(self._forms))]))
        return torch.cat([torch.cat(pieces) * rows, flat.new_full((1,), rows)])


def _room(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def _strides(parameter: Tensor) -> tuple[int, ...]:
    """Return the strides of a gradient: fused kernels walk through it and its parameter as they lie in memory."""
    return torch.empty_like(parameter, device="meta").stride()
