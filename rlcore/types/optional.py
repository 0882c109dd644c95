"""Whether a part offers an interface: all of its methods and attributes, however it comes by them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeGuard, TypeVar

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
    namespaces = [vars(base) for base in interface.__mro__ if base.__module__ not in ("builtins", "typing")]
    public = {name for space in namespaces for name in space if not name.startswith("_")}
    # an attribute may be another library's own; in the class itself, such names are those that `typing` put there
    return tuple(sorted(public.union(*(space.get("__annotations__", ()) for space in namespaces))))


@cache
def methods_of(interface: Any) -> frozenset[str]:
    """Return the names of the methods among `members`; the class has those alone, and only annotations of the rest."""
    return frozenset(members(interface)).intersection(dir(interface))
