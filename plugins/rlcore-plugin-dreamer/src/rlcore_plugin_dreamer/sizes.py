"""The widths of the networks, by the number of parameters that they come to with images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Size = Literal["1m", "12m", "25m", "50m", "100m", "200m", "400m"]


@dataclass(frozen=True)
class Widths:
    """Widths of the networks.

    Attributes:
        deter: of the deterministic state.
        hidden: of the layers around it.
        latents: categorical latents.
        classes: of each latent.
        units: of the layers of encoder, decoder and heads.
        depth: channels of the convolutions, times 2, 3, 4 and 4.
        blocks: of the recurrent weights.
    """

    deter: int
    hidden: int
    classes: int
    units: int
    depth: int
    latents: int = 32
    blocks: int = 8


SIZES: Final[dict[Size, Widths]] = {
    "1m": Widths(512, 64, 4, 64, 4),
    "12m": Widths(2048, 256, 16, 256, 16),
    "25m": Widths(3072, 384, 24, 384, 24),
    "50m": Widths(4096, 512, 32, 512, 32),
    "100m": Widths(6144, 768, 48, 768, 48),
    "200m": Widths(8192, 1024, 64, 1024, 64),
    "400m": Widths(12288, 1536, 96, 1536, 96),
}
