"""The declaration of a loop point: its name, its kind, its arguments and its text. `specs.py` lists the points."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

import pluggy

PROJECT: Final = "rlcore"
hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)

PointKind = Literal["pipeline", "collect", "notify", "owner"]
Where = Literal["outer", "inner", "life"]
_POINT: Final = "rlcore_point"
Spec = TypeVar("Spec", bound=Callable[..., Any])


@dataclass(frozen=True)
class Point:
    """Declaration of a loop point.

    Attributes:
        name: of the method of a hook that implements the point.
        kind: says what a return value does; see `rlcore.hooks.specs`.
        where: `outer` and `life` points get the trainer, `inner` points the learner.
        arguments: names, in the order of the spec.
        returns: annotation of the return value.
        doc: the docstring of the spec.
    """

    name: str
    kind: PointKind
    where: Where
    arguments: tuple[str, ...]
    returns: str
    doc: str


def point(kind: PointKind, where: Where) -> Callable[[Spec], Spec]:
    """Return a decorator that declares a method as a loop point; `points_of` collects them."""

    def declare(function: Spec) -> Spec:
        signature = inspect.signature(function)
        arguments, returns = tuple(signature.parameters)[1:], str(signature.return_annotation)
        doc = inspect.getdoc(function) or ""
        setattr(function, _POINT, Point(function.__name__, kind, where, arguments, returns, doc))
        return hookspec(function)

    return declare


def points_of(*specs: type) -> dict[str, Point]:
    """Return the points that the methods of these classes declare, by name, in the order of the methods."""
    # an attribute of a class that is no point has no mark
    points = [getattr(function, _POINT, None) for spec in specs for function in vars(spec).values()]
    return {point.name: point for point in points if point is not None}
