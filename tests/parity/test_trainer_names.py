"""The names of TorchRL's classes that a subclass may override are those of the installed TorchRL."""

from __future__ import annotations

import json
import runpy
from importlib.resources import files
from pathlib import Path

import pytest

torchrl = pytest.importorskip("torchrl")

WRITER = Path(__file__).parents[2] / "plugins" / "rlcore-plugin-torchrl" / "tests" / "torchrl_names.py"


def tables():
    """Yield the tables of names, and what they would say of the installed TorchRL."""
    from torchrl.trainers import Trainer

    names = sorted(name for name in vars(Trainer) if name[:2] != "__" and name != "_abc_impl")
    yield "rlcore.scripts", "torchrl_names.json", {"torchrl": torchrl.__version__, "Trainer": names}
    yield "rlcore_plugin_torchrl.hooks", "torchrl_names.json", runpy.run_path(str(WRITER))["as_table"]()


def test_the_names_are_those_of_the_installed_torchrl():
    for package, name, now in tables():
        table = json.loads(files(package).joinpath(name).read_text())
        if torchrl.__version__ not in table.values():
            pytest.skip(f"the table is not of TorchRL {torchrl.__version__}, which is installed")
        assert table == now
