"""Overrides of methods: whether a script has one, and refusing those that nobody would call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from rlcore.errors import NotSupportedError

_MISSING: Final = object()
_CHECKED: Final[set[type]] = set()


@dataclass(frozen=True)
class Original:
    """The class of another library that a class here stands for.

    Attributes:
        library: its name.
        names: returns all of its names that a subclass may override.
        instead: names that are not called here, and what to do instead; a name that is not here at all needs no entry.
    """

    library: str
    names: Callable[[], frozenset[str]]
    instead: Mapping[str, str]


class Carries:
    """Base of a class that carries the names of another library's.

    A subclass that overrides a name of the original is refused when it is constructed, unless the name is called here.
    So is one that overrides a private name of the class here, which may mean anything.

    Attributes:
        original: the class that it stands for.
    """

    original: ClassVar[Original]

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Refuse a class that overrides what nobody would call."""
        if cls not in _CHECKED:
            refuse_overrides(cls)
            _CHECKED.add(cls)
        return super().__new__(cls)


def refuse_overrides(kind: type[Carries]) -> None:
    """Refuse a class that overrides what nobody would call.

    Raises:
        NotSupportedError: it does; says what to override instead.
    """
    original = kind.original
    package = _package(next(base for base in kind.__mro__ if "original" in vars(base)))
    ours = next(base for base in kind.__mro__ if _package(base) == package)
    for owner in kind.__mro__[: kind.__mro__.index(ours)]:
        for name, value in sorted(vars(owner).items()):
            here = getattr(ours, name, _MISSING)
            if value is here or name.startswith("__"):
                continue
            if name not in original.names():
                if name.startswith("_") and callable(here):
                    raise NotSupportedError(f"{owner.__name__}.{name} is a name of rlcore's own; choose another one")
            elif name in original.instead or here is _MISSING:
                raise NotSupportedError(
                    f"{owner.__name__}.{name} would never be called: {original.library} calls it, rlcore does not; "
                    f"{original.instead.get(name, 'leave it out')}"
                )


def is_overridden(part: object, name: str) -> bool:
    """Return whether a class outside of the core defines a method of a part."""
    return _package(next(kind for kind in type(part).__mro__ if name in vars(kind))) != "rlcore"


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
