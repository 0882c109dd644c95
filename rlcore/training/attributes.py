"""A part of a trainer as its attribute: what hooks and scripts read of it, and set where they replace a part.

A part lies in `trainer.parts` and nowhere else. The loop reads it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from typing import Self

Part = TypeVar("Part")


class PartAttribute(Generic[Part]):
    """A part as an attribute of the trainer.

    Args:
        name: of the part in `parts`; default: the name of the attribute.
    """

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._attribute = name

    def __set_name__(self, owner: type, name: str) -> None:
        self._name, self._attribute = self._name or name, name

    @overload
    def __get__(self, trainer: None, owner: type) -> Self: ...

    @overload
    def __get__(self, trainer: object, owner: type) -> Part: ...

    def __get__(self, trainer: object | None, owner: type) -> Self | Part:
        if trainer is None:
            return self
        parts = vars(trainer).get("parts")
        if parts is None:  # in the constructor of a subclass
            kind = type(trainer).__name__
            raise AttributeError(f"{kind}.{self._attribute} is not there before the constructor of Trainer is called")
        part: Part = getattr(parts, self._name)  # one descriptor for all names
        return part

    def __set__(self, trainer: Any, value: Part) -> None:
        setattr(trainer.parts, self._name, value)
