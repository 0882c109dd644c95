"""The bodies: their shapes, what they make of images of any form, and what they refuse."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_cnn.bodies import ImpalaCNN, NatureCNN
from rlcore_plugin_cnn.images import ImageInput

from rlcore.errors import ConfigError


def images(*shape, low=0, high=255, dtype=np.uint8):
    return gymnasium.spaces.Box(low, high, shape, dtype)


def sizes(body):
    return [tuple(parameter.shape) for parameter in body.parameters()]


def test_the_nature_cnn_of_atari_has_the_sizes_of_the_paper():
    body = NatureCNN(images(4, 84, 84))
    assert sizes(body)[::2] == [(32, 4, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3), (512, 3136)]
    assert body(torch.zeros(2, 4, 84, 84, dtype=torch.uint8)).shape == (2, 512)


def test_the_impala_cnn_has_fifteen_convolutions():
    body = ImpalaCNN(images(3, 64, 64))
    shapes = sizes(body)[::2]
    assert [shape[:2] for shape in shapes[::5][:3]] == [(16, 3), (32, 16), (32, 32)]
    assert (len(shapes), shapes[-1]) == (16, (256, 2048))
    assert body(torch.zeros(2, 3, 64, 64, dtype=torch.uint8)).shape == (2, 256)


@pytest.mark.parametrize(
    ("shape", "layout", "expected"),
    [
        ((4, 9, 9), "auto", (4, 9, 9)),
        ((9, 8, 3), "auto", (3, 9, 8)),
        ((9, 9, 9), "last", (9, 9, 9)),
        ((7, 6), "auto", (1, 7, 6)),
        ((2, 7, 6, 3), "auto", (6, 7, 6)),
    ],
)
def test_channels_are_found_where_they_are(shape, layout, expected):
    image = ImageInput(images(*shape), layout)
    assert tuple(image.shape) == expected
    seen = torch.randint(0, 256, (2, *shape), dtype=torch.uint8)
    found = image(seen)
    assert found.dtype == torch.float32
    if len(shape) == 4:
        frames = seen.permute(0, 1, 4, 2, 3).reshape(2, 6, 7, 6)
    elif len(shape) == 2:
        frames = seen[:, None]
    else:
        frames = seen if tuple(shape) == expected and layout != "last" else seen.permute(0, 3, 1, 2)
    torch.testing.assert_close(found, frames / 255)


@pytest.mark.parametrize(
    ("space", "divisor"),
    [
        (images(4, 9, 9), 255),
        (images(4, 9, 9, high=10), 10),
        (images(4, 9, 9, high=1, dtype=bool), 1),
        (images(4, 9, 9, low=-1, high=1, dtype=np.float32), 1),
        (images(4, 9, 9, low=-np.inf, high=np.inf, dtype=np.float32), 1),
    ],
)
def test_numbers_are_about_one(space, divisor):
    seen = torch.from_numpy(np.ones((1, 4, 9, 9), dtype=space.dtype))
    torch.testing.assert_close(ImageInput(space)(seen), torch.full((1, 4, 9, 9), 1 / divisor))


@pytest.mark.parametrize(
    ("space", "settings", "told"),
    [
        (images(4, 84, 84, dtype=np.float32), {}, r"\[model\] divisor: images are float32 from 0 to 255"),
        (images(10, 10, 4), {}, r"\[model\] kernels: .* too large for images of 10 x 10.*channels = \[16\]"),
        (images(9, 20, 9), {}, r"\[model\] layout: images of shape \(9, 20, 9\) may have"),
        (images(8), {}, r"\[model\]: a convolution takes images"),
        (images(4, 84, 84), {"strides": [1]}, r"\[model\] kernels: 3 channels, 3 kernels and 1 strides"),
        (images(4, 84, 84), {"initialisation": "kaiming"}, r"\[model\] initialisation: 'kaiming' is none"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(space, settings, told):
    with pytest.raises(ConfigError, match=told):
        NatureCNN(space, **settings)


def test_floats_up_to_255_are_divided_where_that_is_said():
    seen = torch.full((1, 4, 9, 9), 255.0)
    found = ImageInput(images(4, 9, 9, dtype=np.float32), divisor=255)(seen)
    torch.testing.assert_close(found, torch.ones(1, 4, 9, 9))


def test_orthogonal_layers_are_orthogonal():
    body = NatureCNN(images(4, 9, 9), [4], [3], [2], 8, "orthogonal")
    weight = body.linear[1].weight
    torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(8), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [NatureCNN, ImpalaCNN])
def test_channels_may_lie_last_in_memory(kind):
    body = kind(images(4, 36, 36))
    seen = torch.randint(0, 256, (2, 4, 36, 36), dtype=torch.uint8)
    expected = body(seen)
    torch.testing.assert_close(body.to(memory_format=torch.channels_last)(seen), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_layers_are_those_of_stable_baselines3():
    layers = pytest.importorskip("stable_baselines3.common.torch_layers")
    theirs = layers.NatureCNN(images(4, 84, 84), 512)
    ours = NatureCNN(images(4, 84, 84))
    assert sizes(ours) == sizes(theirs)
    ours.load_state_dict(dict(zip(ours.state_dict(), theirs.state_dict().values(), strict=True)))
    seen = torch.randint(0, 256, (3, 4, 84, 84), dtype=torch.uint8)
    torch.testing.assert_close(ours(seen), theirs(seen / 255))
