"""Media as files: pictures, animations and their names."""

import sys
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from rlcore import ConfigError
from rlcore.loggers import media


def test_a_grey_image_becomes_a_png_of_three_channels():
    pixels = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    with Image.open(BytesIO(media.png(pixels))) as opened:
        assert (opened.format, opened.size) == ("PNG", (3, 2))
        assert np.array_equal(np.asarray(opened), np.repeat(pixels.transpose(1, 2, 0), 3, axis=2))


@pytest.mark.parametrize(("fps", "duration"), [(10, 100), (25, 40), (1000, 20)])
def test_a_gif_lasts_as_long_as_its_frames(fps, duration):
    with Image.open(BytesIO(media.gif(85 * np.arange(2, dtype=np.uint8).reshape(1, 2, 1, 1, 1), fps))) as opened:
        assert (opened.n_frames, opened.info["duration"], opened.info["loop"]) == (2, duration, 0)


def test_without_pillow_the_command_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ConfigError, match="pip install pillow"):
        media.png(np.zeros((1, 1, 1), np.uint8))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/b c", "a/b c"),
        ("../../up", "_/_/up"),
        ("/root", "_/root"),
        (".hidden", "hidden"),
        ('a:"b', "a__b"),
        ("", "_"),
    ],
)
def test_names_become_paths_that_stay_inside(name, path):
    assert media.file_name(name) == path
