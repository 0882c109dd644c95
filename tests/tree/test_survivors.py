"""The tool that looks for names that no test notices knows every room and every plugin, and the tests of each."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = importlib.import_module("tests.survivors").TARGETS
ROOMS = sorted(path.parent.name for path in (ROOT / "rlcore").glob("*/__init__.py"))
SOURCES = [ROOT, *sorted((ROOT / "plugins").glob("*/src"))]


@pytest.mark.parametrize(("modules", "tests"), TARGETS, ids=lambda names: names[0])
def test_a_target_names_modules_and_tests_that_exist(modules, tests):
    for module in modules:
        path = module.replace(".", "/")
        places = [source / place for source in SOURCES for place in (f"{path}.py", f"{path}/__init__.py")]
        assert any(place.is_file() for place in places), f"there is no module {module}"
    for place in tests:
        assert (ROOT / place).exists(), f"there is no {place}"


def test_every_room_and_every_plugin_has_a_target():
    targets = [module for modules, _ in TARGETS for module in modules]
    rooms = {module.split(".")[1] for module in targets if module.startswith("rlcore.")}
    assert set(ROOMS) - rooms == set()
    plugins = {source.parent.name.replace("-", "_") for source in SOURCES[1:]}
    assert plugins - set(targets) == set()
