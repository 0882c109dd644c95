"""What a script hands over of another library is adapted by the plugin that is there for it."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from rlcore.errors import MissingPluginError, PluginError
from rlcore.plugins import adapters
from rlcore.plugins.adapters import adapted

ADAPTER = """
    def adapt(part):
        part.adapted_by = __name__
        return part
"""


class Part:
    """Something of a script."""


@pytest.fixture
def library(monkeypatch):
    """A library that is imported, and a part of it."""
    monkeypatch.setitem(sys.modules, "foreignrl", ModuleType("foreignrl"))
    return type("Buffer", (Part,), {"__module__": "foreignrl.data"})


def add(site, content):
    """Install a distribution with an adapter for `foreignrl`."""
    keys = {"entry_point": "foreignrl", "group": adapters.GROUP, "attribute": "adapt"}
    site.add("rlcore-plugin-foreign", "module_of_foreign", content, **keys)


def test_the_adapter_of_an_imported_library_gets_every_part(site, library):
    add(site, ADAPTER)
    assert adapted(library()).adapted_by == "module_of_foreign"
    assert adapted(Part()).adapted_by == "module_of_foreign", "it may hold something of the library"


def test_the_adapter_of_a_library_that_nobody_imported_is_not_imported(site):
    add(site, "raise RuntimeError('imported')\n")
    assert not hasattr(adapted(Part()), "adapted_by")


def test_an_adapter_that_is_broken_says_whose_it_is(site, library):
    add(site, "raise RuntimeError('imported')\n")
    with pytest.raises(PluginError, match=r"the adapter 'foreignrl' \(rlcore-plugin-foreign 1.0\) failed: Runtime"):
        adapted(library())


def test_a_part_of_a_library_without_its_adapter_says_what_to_install(monkeypatch):
    kind = type("Buffer", (), {"__module__": "torchrl.data"})
    monkeypatch.setenv("RLCORE_NO_PLUGINS", "1")
    says = (
        r"of torchrl is taken by rlcore-plugin-torchrl, which is not installed \(RLCORE_NO_PLUGINS is set\): pip inst"
    )
    with pytest.raises(MissingPluginError, match=f"^a Buffer {says}"):
        adapted(kind())
    part = torch.nn.Linear(1, 1)
    assert adapted(part) is part
