"""Thinned lines: how many points stay, and that nothing high or low is lost."""

import numpy as np
import pytest
from rlcore_plugin_reports.html.thinning import finite, thinned
from rlcore_plugin_reports.svg import Line


def line(y, low=None, high=None):
    y = np.asarray(y, dtype=float)
    return Line("a", np.arange(y.size) * 10.0, y, y if low is None else low, y if high is None else high)


@pytest.mark.parametrize("size", [5, 99, 1_000, 100_003])
@pytest.mark.parametrize("most", [4, 50, 1_000])
def test_a_thinned_line_has_at_most_so_many_points_and_all_extremes(size, most):
    y = np.random.default_rng(size).normal(size=size)
    y[size // 3], y[size // 2] = 100, -100
    found = thinned(line(y), most)
    assert found.x.size <= max(most, 4)
    assert (found.y.max(), found.y.min()) == (100, -100)
    assert (found.x[0], found.x[-1]) == (0, (size - 1) * 10)
    assert (np.diff(found.x) > 0).all()
    np.testing.assert_array_equal(found.y, y[(found.x / 10).astype(int)])


def test_each_stretch_keeps_its_own_peak():
    y = np.zeros(10_000)
    y[500::1000] = np.arange(1, 11)
    found = thinned(line(y), 200)
    assert sorted(found.y[found.y > 0]) == list(range(1, 11))


def test_a_band_reaches_over_all_points_that_are_left_out():
    y = np.linspace(0, 1, 1_000)
    low, high = y - 1, y + 1
    low[777], high[333] = -50, 50
    found = thinned(line(y, low, high), 20)
    assert (found.low.min(), found.high.max()) == (-50, 50)
    assert (found.low <= found.y).all()
    assert (found.high >= found.y).all()


def test_a_short_line_stays():
    short = line([1.0, 2.0])
    assert thinned(short, 4) is short


def test_points_that_are_not_finite_go():
    found = finite(line([1.0, np.nan, 3.0, np.inf]))
    assert found.x.tolist() == [0, 20]
