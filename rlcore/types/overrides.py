"""Overrides of methods: whether a script has one, and refusing those that nobody would call."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Final, Self

from rlcore.errors import NotSupportedError

_MISSING: Final = object()


@cache
def originals(package: str) -> Any:
    """Return the mapping in `originals.json` of a package, which is about another library.

    `version` is the library's; `names` are, of each of its classes, all that a subclass may override.
    """
    return json.loads(files(package).joinpath("originals.json").read_text())


@dataclass(frozen=True)
class Original:
    """The class of another library that a class here stands for: that of its name, or of the name of its nearest base.

    Attributes:
        library: its name.
        names: by class of the library, all names that a subclass may override.
        instead: names that are not called here, and what to do instead; a name that is not here at all needs no entry.
    """

    library: str
    names: Mapping[str, Collection[str]]
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
        refuse_overrides(cls)  # type: ignore[arg-type]  # mypy takes no class for hashable
        return super().__new__(cls)


@cache
def refuse_overrides(kind: type[Carries]) -> None:
    """Refuse a class that overrides what nobody would call.

    Raises:
        NotSupportedError: it does; says what to override instead.
    """
    original, names = kind.original, names_of_originals(kind)
    carrier = next(base for base in kind.__mro__ if "original" in vars(base))
    ours = next(base for base in kind.__mro__ if _package(base) == _package(carrier) and issubclass(base, carrier))
    for owner in kind.__mro__[: kind.__mro__.index(ours)]:
        for name, value in sorted(vars(owner).items()):
            here = getattr(ours, name, _MISSING)
            if value is here or name.startswith("__"):
                continue
            if name not in names:
                if name.startswith("_") and callable(here):
                    raise NotSupportedError(f"{owner.__name__}.{name} is a name of rlcore's own; choose another one")
            elif name in original.instead or here is _MISSING:
                raise NotSupportedError(
                    f"{owner.__name__}.{name} would never be called: {original.library} calls it, rlcore does not; "
                    f"{original.instead.get(name, 'leave it out')}"
                )


def names_of_originals(kind: type[Carries]) -> set[str]:
    """Return the names that a subclass of the originals of a class may override."""
    tables = [vars(base)["original"].names for base in kind.__mro__ if "original" in vars(base)]
    nearest = [next((table[base.__name__] for base in kind.__mro__ if base.__name__ in table), ()) for table in tables]
    return {name for names in nearest for name in names}


def is_overridden(part: object, name: str, package: str = "rlcore") -> bool:
    """Return whether a class outside of a package, by default the core, defines a name of a part."""
    owner = next((kind for kind in type(part).__mro__ if name in vars(kind)), None)
    return owner is not None and _package(owner) != package


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
