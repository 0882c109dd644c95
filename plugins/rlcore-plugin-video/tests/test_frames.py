"""Any pixels to frames, cropped, tiled and of one length."""

import numpy as np
import pytest
import torch
from rlcore_plugin_video.frames import center_crop, stack, tile, to_frames

from rlcore.errors import RlcoreError


def numbered(*shape):
    return torch.arange(int(np.prod(shape))).remainder(251).to(torch.uint8).reshape(shape)


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_come_first_wherever_they_were(channels):
    first = numbered(2, channels, 6, 8)
    last = first.movedim(1, -1)
    for pixels in (first, last, first.numpy(), last.numpy()[:, ::-1][:, ::-1]):
        frames = to_frames(pixels)
        assert frames.is_contiguous()
        assert torch.equal(frames, first)


def test_pixels_without_channels_are_grey():
    assert torch.equal(to_frames(numbered(6, 8)), numbered(6, 8)[None])


def test_the_frames_are_a_copy():
    pixels = numbered(3, 6, 8)
    frames = to_frames(pixels)
    pixels.zero_()
    assert torch.equal(frames, numbered(3, 6, 8))


def test_floats_between_zero_and_one_become_bytes():
    frames = to_frames(torch.tensor([0.0, 0.5, 1.0]).expand(3, 4, 3))
    assert frames.dtype == torch.uint8
    assert frames[0, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (torch.zeros(5, 6, 8), r"camera of shape \[5, 6, 8\] are no frames; .*1 or 3 channels"),
        (torch.zeros(7), r"camera of shape \[7\] are no frames"),
        (torch.full((3, 4, 4), 200.0), r"camera go from 200 to 200; .*Divide by 255\?"),
        (torch.full((3, 4, 4), float("nan")), r"camera go from nan to nan"),
        (torch.zeros(3, 4, 4, dtype=torch.int64), r"camera are torch.int64; frames are uint8"),
    ],
)
def test_what_are_no_frames_is_an_error(pixels, message):
    with pytest.raises(RlcoreError, match=message):
        to_frames(pixels, "camera")


def test_a_crop_is_the_middle_square():
    frames = numbered(2, 3, 7, 10)
    assert torch.equal(center_crop(frames, 4), frames[..., 1:5, 3:7])
    assert torch.equal(center_crop(frames, 8), frames[..., :, 1:9]), "a side that is shorter stays"


def test_tiles_stand_side_by_side_and_the_rest_is_black():
    videos = numbered(5, 2, 3, 4, 6)
    grid = tile(videos)
    assert grid.shape == (2, 3, 2 * 4, 3 * 6)
    for index in range(5):
        row, column = divmod(index, 3)
        assert torch.equal(grid[:, :, row * 4 : row * 4 + 4, column * 6 : column * 6 + 6], videos[index])
    assert not grid[:, :, 4:, 12:].any()
    assert torch.equal(tile(videos[:1]), videos[0])


def test_shorter_videos_stand_still_at_their_last_frame():
    long, short = numbered(4, 3, 2, 2), numbered(2, 3, 2, 2) + 1
    both = stack([long, short])
    assert torch.equal(both[0], long)
    assert torch.equal(both[1], torch.cat([short, short[-1:], short[-1:]]))
    assert torch.equal(stack([short]), short[None])
