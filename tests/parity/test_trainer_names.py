"""The names of TorchRL's classes that a subclass may override are those of the installed TorchRL."""

from __future__ import annotations

import pytest

from rlcore.types import originals

torchrl = pytest.importorskip("torchrl")

# attributes that constructing one object gives to all of its class, whichever test was first
CLOCKS = {
    "_app_state",
    "_collected_frames",
    "_last_log",
    "_last_save",
    "_optim_count",
    "collected_frames",
    "frame_count",
}


@pytest.mark.parametrize("package", ["rlcore.scripts", "rlcore_plugin_torchrl"])
def test_the_names_are_those_of_the_installed_torchrl(package):
    from torchrl import trainers
    from torchrl.trainers import algorithms

    table = originals(package)
    if table["version"] != torchrl.__version__:
        pytest.skip(f"the table is of TorchRL {table['version']}, and {torchrl.__version__} is installed")
    for name, names in table["names"].items():
        kind = getattr(trainers, name, None) or getattr(algorithms, name)
        bases = [base for base in kind.__mro__ if base.__module__.startswith("torchrl")]
        if kind is not trainers.Trainer:  # whose names have a table of their own
            bases = [base for base in bases if base is not trainers.Trainer]
        own = {name for base in bases for name in vars(base) if name[:2] != "__" and name != "_abc_impl"}
        assert names == sorted(own - CLOCKS), name
