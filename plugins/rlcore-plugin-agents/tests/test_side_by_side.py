"""How images are shown that have neither one channel nor three."""

import torch
from rlcore_plugin_agents.side_by_side import joined


def pixels(images):
    """Return the colours of the pixels of the first picture, on the left."""
    picture = next(joined(images, images, torch.tensor([True])))
    size = images.shape[-1]
    step = (picture.shape[-1] // 2 - 8) // size
    return [tuple(picture[:, 4 + step // 2, 4 + step * column + step // 2].tolist()) for column in range(size)]


def test_each_plane_of_zeros_and_ones_has_a_colour():
    planes = torch.eye(6).view(1, 6, 1, 6).repeat(1, 1, 6, 1)  # plane k has the ones of column k
    colours = pixels(planes)
    assert len(set(colours)) == 6
    assert all(max(colour) == 255 for colour in colours)


def test_of_frames_that_are_stacked_the_last_is_shown():
    frames = torch.full((1, 4, 2, 2), 0.25)
    frames[:, -1, :, 1] = 0.5
    assert pixels(frames) == [(64, 64, 64), (128, 128, 128)]
