"""A lazy package says the same to those who run it and to those who read types."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from rlcore.plugins.known import lent_to

ROOT = Path(__file__).parents[2]
LAZY = {
    ".".join(path.parent.relative_to(source).parts): path
    for source in (ROOT, *ROOT.glob("plugins/*/src"))
    for package in source.glob("rlcore*")
    for path in package.rglob("__init__.py")
    if "= lazy(" in path.read_text()
}


# what `rlcore.types` offers to types only: at run time it would need NumPy
ONLY_TYPES = {"Array", "BoolArray"}


def for_types(path):
    """Yield (module, name there, name here) of what a package imports under `TYPE_CHECKING`."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                yield from ((statement.module, alias.name, alias.asname) for alias in statement.names if alias.asname)


def test_the_lazy_packages_are_found():
    assert {"rlcore", "rlcore.helpers", "rlcore.algorithms", "rlcore_plugin_testing", "rlcore.loggers"} <= set(LAZY)


@pytest.mark.parametrize("package", sorted(LAZY))
def test_types_and_table_agree(package):
    module = importlib.import_module(package)
    typed = {here for _, _, here in for_types(LAZY[package])}
    lent = set(lent_to(package)) | {"__version__"}
    offered = set(module.__all__) - lent
    assert typed - ONLY_TYPES - lent <= offered
    assert offered - typed <= set(vars(module)), "what is not lazy is simply imported"
    for place, there, here in for_types(LAZY[package]):
        if here not in ONLY_TYPES:
            assert getattr(module, here) is getattr(importlib.import_module(place), there)


@pytest.mark.parametrize("package", sorted(LAZY))
def test_a_name_that_is_not_there_is_an_attribute_error_with_the_nearest(package):
    module = importlib.import_module(package)
    name = max(module.__all__, key=len)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute '{name}x'.*did you mean '{name}'"):
        getattr(module, f"{name}x")
    assert set(dir(module)) >= set(module.__all__)


def test_importing_a_module_of_a_package_waits_for_no_guess():
    code = "import sys; from rlcore import version; print('difflib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
