"""The recorded surface of the hook specs: what plugins rely on changes only on purpose.

Record it again with `python tests/hooks/test_surface.py`, and say in the changelog what changed.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

from rlcore.hooks.specs import POINTS, LifeSpecs, LoopSpecs
from rlcore.plugins.component import PluginSpecs

FILE = Path(__file__).with_name("surface.json")


def surface():
    points = {
        name: {"kind": point.kind, "where": point.where, "arguments": list(point.arguments)}
        for name, point in POINTS.items()
    }
    asked = inspect.signature(PluginSpecs.provide_components).parameters
    return {"plugin": {"provide_components": list(asked)[1:]}, "points": points}


def test_the_specs_are_those_that_were_recorded():
    assert surface() == json.loads(FILE.read_text()), (
        "the hook specs differ from tests/hooks/surface.json, which plugins rely on. Adding a point or an argument is "
        "a minor release; renaming or removing one is a major one, after a series that warns. When the change is "
        "meant: python tests/hooks/test_surface.py"
    )


def test_every_public_function_of_the_spec_classes_is_a_declared_point():
    functions = [name for specs in (LoopSpecs, LifeSpecs) for name in vars(specs) if not name.startswith("_")]
    assert functions == list(POINTS)


if __name__ == "__main__":
    FILE.write_text(json.dumps(surface(), indent=1) + "\n")
