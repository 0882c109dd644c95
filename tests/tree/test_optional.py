"""What a part may have is asked through protocols; the code asks for attributes by name only where it must."""

import ast
from pathlib import Path
from typing import Protocol
from unittest import mock

import pytest
import torch
from rlcore_plugin_torchrl import protocols

from rlcore.types import (
    exports,
    foreign,
    models,
    outputs,
)
from rlcore.types.optional import members, missing, offers

ROOT = Path(__file__).parents[2]
# goes down as more is asked through protocols, and never up
ASKED_BY_NAME = 30
# the files of `offers` and `with_defaults`
MECHANISM = (ROOT / "rlcore/types/optional.py", ROOT / "rlcore/types/part.py")
MODULES = (exports, models, foreign, protocols)
PROTOCOLS = {name: value for module in MODULES for name, value in vars(module).items()}
PROTOCOLS = {
    name: value for name, value in PROTOCOLS.items() if getattr(value, "_is_protocol", False) and value is not Protocol
}


def asked(source: str) -> list[int]:
    """Return the lines that ask for an attribute by its name."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("getattr", "hasattr")]


def test_no_more_attributes_are_asked_for_by_name_than_before():
    places = {path: asked(path.read_text()) for path in (ROOT / "rlcore").rglob("*.py") if path not in MECHANISM}
    count = sum(map(len, places.values()))
    assert count <= ASKED_BY_NAME, (
        f"{count} calls of getattr and hasattr, more than {ASKED_BY_NAME}: read with_defaults(part, ...) with the "
        "class of its kind, or ask offers(part, ...) with a protocol of foreign.py for an object of another library"
    )


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_every_protocol_can_be_asked_for_and_is(name):
    protocol = PROTOCOLS[name]
    assert members(protocol)
    assert not offers(object(), protocol)
    assert protocol.__doc__
    files = [path for room in ("rlcore", "plugins") for path in (ROOT / room).rglob("*.py")]
    others = [path for path in files if path.parent.name != "types"]
    assert any(name in path.read_text() for path in others), f"nothing asks for {name}"


class Raises:
    """Has what a protocol names in its class, and gives it to nobody."""

    @property
    def clone(self):
        raise AttributeError("not here")


class GivesAll:
    """Gives every attribute through `__getattr__`."""

    def __getattr__(self, name):
        return lambda: name


def test_what_is_offered_is_what_can_be_had():
    assert not offers(Raises(), protocols.Clonable)
    assert offers(GivesAll(), protocols.Clonable)
    assert offers(Raises, protocols.Clonable), "a class that has it"
    module = torch.nn.Module()
    assert not offers(module, protocols.WithTransform)
    module.add_module("transform", torch.nn.Linear(1, 1))
    assert offers(module, protocols.WithTransform), "a submodule"


class GoesWithout:
    """Inherits methods that it does without, and uses the name of another for a number."""

    state_dict = None
    load_state_dict = None
    clone = 3
    sampler = None


def test_a_method_that_cannot_be_called_is_none():
    assert not offers(GoesWithout(), outputs.Stateful)
    assert not offers(GoesWithout(), protocols.Clonable)
    assert offers(GoesWithout(), protocols.WithSampler), "an attribute may be anything"
    assert offers(mock.Mock(), outputs.Stateful)
    assert offers(mock.Mock(spec=["state_dict", "load_state_dict"]), outputs.Stateful)
    assert not offers(mock.Mock(spec=["state_dict"]), outputs.Stateful)


def test_the_members_of_a_protocol_are_its_names_and_those_that_it_inherits():
    assert members(protocols.WithSampler) == ("sampler",)
    assert members(foreign.FillsBufferInBackground) == ("getattr_rb", "start")
    assert members(protocols.WithTrainingMode) == ("eval", "train", "training")
    assert members(protocols.Prefetching) == ("_prefetch",), "an attribute that another library has for itself"


def test_what_is_missing_is_named():
    class NeverEvaluated:
        training = True

    assert missing(NeverEvaluated(), protocols.WithTrainingMode) == ["eval", "train"]
