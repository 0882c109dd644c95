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
