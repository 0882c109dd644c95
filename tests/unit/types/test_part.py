"""What the core reads of a part that need not have it: its own, or the default of the class of its kind."""

from unittest import mock

import pytest
import torch

from rlcore.types import Learner, Loss, Part, defines, with_defaults
from rlcore.types.optional import missing


class Bare:
    """Derives from nothing, and has no more than it must."""

    requires = ("actor",)

    def __call__(self, minibatch):
        return {}


class Full(Bare):
    """Derives from nothing, and says all."""

    loss_names = ("loss_actor",)
    target_updater = None

    def sample_noise(self, samples, generator):
        return {"noise": samples}

    def inexact(self):
        return "it forgets"


class Derived(torch.nn.Module, Loss):
    """Derives from the class of its kind."""

    requires = ("actor",)

    def forward(self, minibatch):
        return {}


class Without(Full):
    """Does without methods of the class above it."""

    sample_noise = None
    inexact = 3


@pytest.mark.parametrize(
    "loss", [Bare(), Derived(), Bare, Derived], ids=["bare object", "derived object", "bare class", "derived class"]
)
def test_what_a_part_lacks_is_the_default_of_its_kind(loss):
    read = with_defaults(loss, Loss)
    assert (read.requires, read.loss_names, read.sides, read.reads) == (("actor",), (), (), None)
    assert not defines(loss, Loss.sample_noise)
    if not isinstance(loss, type):
        assert read.inexact() is None
        assert read.sample_noise(1, torch.Generator()) == {}


def test_what_a_part_has_is_its_own():
    read = with_defaults(Full(), Loss)
    assert (read.loss_names, read.inexact(), read.sample_noise(2, None)) == (
        ("loss_actor",),
        "it forgets",
        {"noise": 2},
    )
    assert defines(Full(), Loss.sample_noise)
    assert defines(Full, Loss.sample_noise), "a class of parts"
    assert with_defaults(Full, Loss).loss_names == ("loss_actor",)


def test_a_method_that_cannot_be_called_is_lacking():
    read = with_defaults(Without(), Loss)
    assert (read.inexact(), read.sample_noise(2, torch.Generator())) == (None, {})
    assert not defines(Without(), Part.inexact)
    assert not defines(Without(), Loss.sample_noise)


def test_a_default_is_called_with_the_part():
    class Counted(Part):
        times = 0

        def count(self):
            self.times += 1
            return self.times

    part = type("Other", (), {"times": 4})()
    assert with_defaults(part, Counted).count() == 5
    assert part.times == 5


def test_a_submodule_is_found_behind_a_default():
    loss = Derived()
    loss.target_updater = torch.nn.Linear(1, 1)
    assert loss.target_updater is None, "torch finds submodules after what the classes have"
    assert with_defaults(loss, Loss).target_updater is dict(loss.named_children())["target_updater"]


def test_what_a_getattr_gives_counts_and_a_property_that_raises_does_not():
    class Raises:
        @property
        def inexact(self):
            raise AttributeError("not here")

    assert with_defaults(Raises(), Part).inexact() is None
    assert not defines(Raises(), Part.inexact)
    assert defines(mock.Mock(), Learner.follow)
    assert not defines(mock.Mock(spec=[]), Learner.follow)


def test_what_is_needed_and_absent_is_named():
    assert missing(object(), Loss) == ["__call__", "requires"]
    assert missing(object(), Learner) == ["update"]
    assert missing(Bare(), Loss) == []
    with pytest.raises(AttributeError, match="object has no attribute 'requires'"):
        with_defaults(object(), Loss).requires  # noqa: B018
