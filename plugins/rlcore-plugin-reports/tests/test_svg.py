"""Charts as SVG: what is drawn, where, and what cannot be drawn."""

import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from rlcore_plugin_reports.svg import COLOURS, Line, chart, picture


def line(x, y, low=None, high=None, name="a"):
    low, high = (y if low is None else low), (y if high is None else high)
    return Line(name, *(np.array(values, dtype=float) for values in (x, y, low, high)))


def drawn(*lines, title="t"):
    return ElementTree.fromstring(chart(title, lines))


def places(element):
    return [tuple(map(float, pair.split(","))) for pair in element.get("points").split()]


def test_a_line_goes_through_its_points_and_larger_is_higher():
    (found,) = drawn(line([0, 5, 10], [0.0, 1.0, 0.0])).iter("polyline")
    (x0, y0), (x1, y1), (x2, y2) = places(found)
    assert x0 < x1 < x2
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y1 < y0 == y2, "y grows downwards on a screen"


def test_a_band_is_drawn_between_low_and_high_and_not_without_a_spread():
    tree = drawn(line([0, 1], [1, 1], [0, 0], [2, 2]), line([0, 1], [1, 1]))
    (band,) = tree.iter("polygon")
    assert len(places(band)) == 4
    assert [found.get("stroke") for found in tree.iter("polyline")] == list(COLOURS[:2])


def test_ticks_are_round_and_span_the_values():
    texts = [text.text for text in drawn(line([0, 20_480], [0.13, 487.0])).iter("text")]
    assert texts[1:7] == ["0", "100", "200", "300", "400", "500"]
    assert "5k" in texts
    assert "25k" in texts


def test_a_batch_beyond_the_last_tick_widens_no_chart():
    tree = drawn(line([0, 100_096], [0, 1]))
    assert [text.text for text in tree.iter("text")][-2] == "100k"
    ((_, _), (end, _)) = places(next(tree.iter("polyline")))
    assert 442.0 < end < 443.0


@pytest.mark.parametrize("values", [[3.0, 3.0], [0.0, 0.0], [-1e308, 1e308], [1e-300, 2e-300], [1e15, 1e15 + 1]])
def test_any_range_can_be_drawn(values):
    (found,) = drawn(line([0, 1], values)).iter("polyline")
    assert all(math.isfinite(number) and -1 <= number <= 500 for place in places(found) for number in place)


def test_points_that_are_not_finite_are_left_out():
    (found,) = drawn(line([0, 1, 2, 3], [1.0, math.nan, math.inf, 2.0])).iter("polyline")
    assert len(places(found)) == 2


def test_nothing_is_said_to_be_nothing():
    texts = [text.text for text in drawn(line([], [])).iter("text")]
    assert "nothing recorded" in texts


def test_a_long_line_is_thinned_and_keeps_its_ends():
    text = chart("t", [line(range(100_000), range(100_000))])
    assert len(text) < 20_000
    found = places(next(iter(ElementTree.fromstring(text).iter("polyline"))))
    assert len(found) == 500
    assert (found[0][0], found[-1][0]) == (62.0, 442.0)


def test_names_cannot_break_out():
    text = chart('<script>"', [line([0, 1], [0, 1], name="</title><b>")])
    assert not re.search(r"<script|<b>", text)


def test_a_picture_is_a_file_of_its_own_with_the_names_of_its_lines():
    x = np.arange(3.0)
    text = picture("A & B", [Line("one <1>", x, x, x, x), Line("empty", x[:0], x[:0], x[:0], x[:0])])
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    said = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert said[0] == "A & B"
    assert said[-1] == "one <1>"
    assert "empty" not in said
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"


def test_a_long_title_is_squeezed_into_the_width_of_the_chart():
    short, long = (
        next(element for element in drawn(line([0, 1], [0, 1]), title="t" * length) if element.get("class") == "title")
        for length in (30, 90)
    )
    assert short.get("textLength") is None
    assert float(long.get("x")) + float(long.get("textLength")) <= 460
