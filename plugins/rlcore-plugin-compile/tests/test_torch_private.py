"""The private names of torch that compiled updates use are looked up in one place."""

from pathlib import Path

import rlcore_plugin_compile

from tests.unit.learners.test_torch_private import private_names

LOOKED_UP = {"_dynamo", "_linear_pointwise"}
# parts of the compiler, without which an update is compiled as torch does it
IMPORTED = {"_inductor"}


def test_every_private_name_is_in_the_lists():
    assert private_names(Path(rlcore_plugin_compile.__file__).parent) == (LOOKED_UP, IMPORTED)
