"""Rules of NumPy for the bins of a histogram, on numbers that they have trouble with."""

import numpy as np
import pytest

from rlcore.errors import RlcoreError
from rlcore.loggers import values

EXTREME = {
    "more than memory has": np.r_[np.arange(1000) * 1e-9, 1e9],
    "more than an integer holds": np.r_[np.linspace(0, 1e-12, 1000), 1.0, 1e300],
    "steps too small for floats": np.r_[np.linspace(1.0, 1.0 + 1e-15, 100), 1e15],
}


@pytest.mark.parametrize("data", EXTREME.values(), ids=EXTREME)
def test_a_rule_that_asks_for_too_many_bins_gets_as_many_as_there_can_be(data):
    assert len(values.histogram(data, "fd").counts) == values.MOST_BINS


def test_a_rule_that_numpy_does_not_have_is_refused():
    with pytest.raises(RlcoreError, match="bins = 'freedman': 'freedman' is not a valid estimator"):
        values.histogram([1.0, 2.0], "freedman")
