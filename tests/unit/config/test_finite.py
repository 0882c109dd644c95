"""Numbers that are not finite are refused in every section, whether its schema says so or not."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest
from pydantic import BaseModel, Field

from rlcore.config.core import CORE_SECTIONS
from rlcore.config.validation import checked
from rlcore.plugins.discovery import installed
from rlcore.plugins.host import PluginHost


def schemas():
    host = PluginHost()
    for plugin in installed():
        host.load(plugin.name)
    found = {str(entry): entry.schema() for entry in host.registry.provided}
    return {**found, **CORE_SECTIONS}


def numbers():
    for owner, schema in schemas().items():
        for key, entry in schema.model_fields.items():
            if float in (entry.annotation, *get_args(entry.annotation)):
                yield pytest.param(schema, key, id=f"{owner} {key}")


@pytest.mark.parametrize(("schema", "key"), list(numbers()))
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_number_that_is_not_finite_is_refused(schema, key, value):
    problems: list[str] = []
    assert checked(schema, {key: value}, "section", "its owner", problems) is None
    assert any(problem.startswith(f"[section] {key}") for problem in problems), problems


class Reach(BaseModel, extra="forbid"):
    limit: float = Field(math.inf, description="of a plugin that means it")
    limits: tuple[float, ...] = ()
    free: dict[str, Any] = {}
    count: int = 1


def test_a_default_may_be_infinite_and_be_said():
    problems: list[str] = []
    assert checked(Reach, {"limit": math.inf}, "section", "its owner", problems) is not None
    assert problems == []


@pytest.mark.parametrize(("key", "value"), [("limits", [1.0, math.inf]), ("free", {"deep": {"reach": [math.nan]}})])
def test_a_number_inside_a_value_is_finite_too(key, value):
    """A resolved config could not be written with it."""
    problems: list[str] = []
    assert checked(Reach, {key: value}, "section", "its owner", problems) is None
    assert problems == [f"[section] {key}: must be a finite number; found {value} (its owner)"]


def test_a_truth_value_is_no_default_of_a_number():
    problems: list[str] = []
    assert checked(Reach, {"count": True}, "section", "its owner", problems) is None
