"""The names of TorchRL's trainer that a subclass may override are those of the installed TorchRL."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

torchrl = pytest.importorskip("torchrl")


def test_the_names_are_those_of_the_installed_torchrl():
    from torchrl.trainers import Trainer

    table = json.loads(files("rlcore.scripts").joinpath("torchrl_names.json").read_text())
    if table["torchrl"] != torchrl.__version__:
        pytest.skip(f"the table is of TorchRL {table['torchrl']}, and {torchrl.__version__} is installed")
    assert table["Trainer"] == sorted(name for name in vars(Trainer) if name[:2] != "__" and name != "_abc_impl")


def test_the_names_of_named_trainers_are_those_of_the_installed_torchrl():
    import torchrl.trainers.algorithms as algorithms
    from torchrl.trainers import Trainer

    table = json.loads(files("rlcore_plugin_torchrl.algorithms").joinpath("torchrl_names.json").read_text())
    if table.pop("torchrl") != torchrl.__version__:
        pytest.skip(f"the table is of another TorchRL than {torchrl.__version__}, which is installed")
    for kind, names in table.items():
        bases = getattr(algorithms, kind).__mro__
        own = {name for base in bases[: bases.index(Trainer)] for name in vars(base)}
        assert names == sorted(name for name in own if name[:2] != "__" and name != "_abc_impl")
