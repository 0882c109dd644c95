"""A minibatch that says where its rows lie."""

import pytest
import torch
from rlcore_plugin_replay.row_minibatch import RowMinibatch

from rlcore import Minibatch


@pytest.mark.parametrize("touch", ["nothing", "another entry", "read", "replaced"])
def test_rows_can_be_had_where_they_lie_until_an_entry_of_them_is_read_or_replaced(touch):
    columns, places = {"a": torch.arange(5.0), ("next", "b"): torch.zeros(5)}, torch.tensor([1, 3])
    batch = RowMinibatch(columns, places, ("weight",), lambda key: columns[key][places])
    assert (batch.size, list(batch)) == (2, ["a", ("next", "b"), "weight"])
    if touch == "another entry":
        batch["weight"] = torch.ones(2)
    elif touch == "read":
        assert batch["a"].tolist() == [1, 3]
    elif touch == "replaced":
        batch["next", "b"] = torch.ones(2)
    if touch in ("nothing", "another entry"):
        assert batch.rows is not None
        assert batch.rows.columns is columns
        assert batch.rows.places is places
    else:
        assert batch.rows is None
    assert Minibatch.of(columns).rows is None
