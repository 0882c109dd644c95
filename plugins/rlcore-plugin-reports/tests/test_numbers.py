"""Numbers as the page writes them."""

import pytest
from rlcore_plugin_reports.html.numbers import duration, figure, size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0.0, "0.000"),
        (500.0, "500.0"),
        (-1.5, "-1.5"),
        (0.25, "0.250"),
        (0.00012, "0.00012"),
        (12345.6, "12,346"),
        (4e7, "4e+07"),
        (float("nan"), "nan"),
    ],
)
def test_figures(value, text):
    assert figure(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (4.25, "4.2 s"),
        (59.99, "60.0 s"),
        (125, "2 min 5 s"),
        (3599.9, "59 min 59 s"),
        (3 * 3600 + 59 * 60 + 59, "3 h 59 min"),
        (86400 * 2 + 3600, "2 d 1 h"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0 B"), (999, "999 B"), (2_100_000, "2.1 MB"), (5e15, "5000.0 TB")])
def test_sizes(value, text):
    assert size(value) == text
