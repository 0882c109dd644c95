"""What a part may have besides its interface; the core asks `offers(part, Seedable)` and does without where not.

A part inherits from none of these: the methods and attributes are all that counts.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard, TypeVar

if TYPE_CHECKING:
    pass


Interface = TypeVar("Interface")
_ABSENT: Final = object()


def offers(part: object, interface: type[Interface]) -> TypeGuard[Interface]:
    """Return whether a part has every method and attribute that an interface names, however it comes by them.

    A method has to be one that can be called: a part may set it to None to say that it goes without, and may use its
    name for something else.

    `isinstance` would not do: on Python 3.11 it takes a property that raises for an attribute, and from 3.12 on it does
    not see what a `__getattr__` gives, such as the submodules of a `torch.nn.Module`.

    Args:
        part: any object, or a class.
        interface: a protocol, or the class of a kind of part.
    """
    return not missing(part, interface)


def missing(part: object, interface: Any) -> list[str]:
    """Return the names of what an interface has and a part does not offer."""
    methods = methods_of(interface)
    return [name for name in members(interface) if not _suits(part, getattr(part, name, _ABSENT), name in methods)]


def _suits(part: object, value: object, method: bool) -> bool:
    if method and not isinstance(part, type):  # of a class: what its objects have in place of a property is not known
        return callable(value)
    return value is not _ABSENT


@cache
def members(interface: Any) -> tuple[str, ...]:
    """Return the names of what a part needs to have for an interface, with those that it inherits.

    They are all that a protocol names; and of the class of a kind what is abstract or has no value there.
    """
    if not getattr(interface, "_is_protocol", False):
        annotated = {name for base in interface.__mro__ for name in vars(base).get("__annotations__", ())}
        return tuple(
            sorted(interface.__abstractmethods__ | {name for name in annotated if not hasattr(interface, name)})
        )
    own = [vars(base) for base in interface.__mro__ if base.__module__ not in ("builtins", "typing")]
    public = {name for space in own for name in space if not name.startswith("_")}
    # an attribute may be another library's own; in the class itself, such names are those that `typing` put there
    return tuple(sorted(public.union(*(space.get("__annotations__", ()) for space in own))))


@cache
def methods_of(interface: Any) -> frozenset[str]:
    """Return the names of the methods among `members`; the class has those alone, and only annotations of the rest."""
    return frozenset(members(interface)).intersection(dir(interface))


# what a resume asks


class Saveable(Protocol):
    """Any part with a state, whether or not it takes one back: `Stateful` does both."""

    def state_dict(self) -> Any:
        """Return it."""
        ...


class Observer(Protocol):
    """A hook or logger that may only watch: without it, the run has the same bits.

    Attributes:
        observer: whether it only watches; best on the class, so that it is known before the part is built.
    """

    observer: bool


# what is asked of a plugin


class Provider(Protocol):
    """A module, or another object, that is a plugin with components."""

    def provide_components(self) -> Any:
        """Return them."""
        ...


class Configured(Protocol):
    """A class of components that brings the schema of its section.

    Attributes:
        Config: a model of pydantic.
    """

    Config: Any


# what is asked while a run is built


class Discounting(Protocol):
    """A schema with a key `gamma` that does not always count; the discounts of a config have to agree.

    Attributes:
        discounts: whether it counts.
    """

    discounts: bool


class WithPolicy(Protocol):
    """A model, whose policy acts in envs.

    Attributes:
        policy: acts with the weights of the model.
    """

    policy: Any


# what is asked while a run trains


class FiniteChecker(Protocol):
    """An operation at `optimizer` that can tell whether its losses and gradients were finite."""

    def check_finite(self) -> None:
        """Look at those of the iteration; called at its end, as looking waits for the device.

        Raises:
            NumericalError: one was not finite.
        """
        ...


class Waiting(Protocol):
    """A group of several processes that measures how long this one waits for the others.

    Attributes:
        waited: seconds, over all calls.
    """

    waited: float


class Closable(Protocol):
    """Whatever holds something that must be released."""

    def close(self) -> object:
        """Release it. May be called twice."""
        ...


# what a log writer asks its logger


class Sender(Protocol):
    """A logger that sends to a server what lies on this machine's disk.

    Attributes:
        unsent: how many records wait there.
    """

    unsent: int
