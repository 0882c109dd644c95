"""Writes down the names of TorchRL's hook objects: `python torchrl_names.py > torchrl_names.json`."""

import inspect
import json
import sys

import torchrl
from rlcore_plugin_torchrl.hooks.stock import StockHook
from torchrl import trainers

import rlcore


def classes():
    """Return TorchRL's hook objects that are here too, by name."""
    kinds = inspect.getmembers(trainers, inspect.isclass)
    return {name: kind for name, kind in kinds if issubclass(getattr(rlcore, name, object), StockHook)}


def names_of(kind):
    """Return the names that the class and its bases define."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("torchrl")]
    names = {name for base in bases for name in vars(base) if not name.startswith("__") and name != "_abc_impl"}
    return sorted(names)


def as_table():
    """Return what `originals.json` says."""
    return {"version": torchrl.__version__, "names": {name: names_of(kind) for name, kind in classes().items()}}


if __name__ == "__main__":
    json.dump(as_table(), sys.stdout, indent=1)
