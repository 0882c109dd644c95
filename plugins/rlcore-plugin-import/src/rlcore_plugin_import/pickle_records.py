"""A pickle read as records: what it would import and call is noted by name, and nothing is imported or called."""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from rlcore.errors import StorageError

_MOST_OPERATIONS: Final = 1_000_000
_MARK: Final = object()
# operations whose argument is the value that they push
_CONSTANTS: Final = (
    *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT"),
    *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
)
_SINGLE: Final = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class Name:
    """A name that a pickle would import.

    Attributes:
        text: `module.name`.
    """

    text: str


@dataclass(eq=False)
class Record:
    """An object that a pickle would make.

    Attributes:
        made_by: what it would call.
        arguments: of that call.
        state: what it would set afterwards; None for nothing.
    """

    made_by: Name
    arguments: tuple[Any, ...]
    state: Any = None

    @property
    def fields(self) -> dict[str, Any]:
        """The attributes by name; none where the state is no dict."""
        return self.state if isinstance(self.state, dict) else {}


def read_records(data: bytes, allowed: Collection[str], what: str) -> Any:
    """Return what a pickle describes: plain values, and a `Record` for each object.

    Args:
        data: the pickle.
        allowed: names that it may have, as `module.name`.
        what: it is of, for messages.

    Raises:
        StorageError: it is no pickle, has an operation that is not read here, or a name that is not allowed.
    """
    try:
        return _Reader(allowed, what).read(data)
    except StorageError:
        raise
    except Exception as error:  # bytes that were made to harm raise anything
        raise StorageError(f"{what} is no pickle that can be read: {error}") from None


class _Reader:
    """Follows the operations of one pickle with a stack of values.

    Args:
        allowed: names.
        what: for messages.
    """

    def __init__(self, allowed: Collection[str], what: str) -> None:
        self._allowed = allowed
        self._what = what
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._others: dict[str, Callable[[Any], None]] = {
            "GLOBAL": lambda argument: self._push_name(*argument.split(" ", 1)),
            "STACK_GLOBAL": lambda _: self._push_name(*self._pop(2)),
            "MEMOIZE": lambda _: self._remember(len(self._memo)),
            "APPEND": lambda _: self._append(self._pop(1)),
            "APPENDS": lambda _: self._append(self._pop_to_mark()),
            "SETITEM": lambda _: self._set_items(self._pop(2)),
            "SETITEMS": lambda _: self._set_items(self._pop_to_mark()),
            "TUPLE": lambda _: self._stack.append(tuple(self._pop_to_mark())),
            "LIST": lambda _: self._stack.append(self._pop_to_mark()),
            "MARK": lambda _: self._stack.append(_MARK),
            "EMPTY_TUPLE": lambda _: self._stack.append(()),
            "EMPTY_LIST": lambda _: self._stack.append([]),
            "EMPTY_DICT": lambda _: self._stack.append({}),
            "REDUCE": lambda _: self._make(*self._pop(2)),
            "NEWOBJ": lambda _: self._make(*self._pop(2)),
            "BUILD": lambda _: self._build(*self._pop(1)),
        }

    def read(self, data: bytes) -> Any:
        for count, (operation, argument, _) in enumerate(pickletools.genops(data)):
            if count >= _MOST_OPERATIONS:
                raise StorageError(f"{self._what} has more than {_MOST_OPERATIONS:,} operations, and is not read")
            if operation.name == "STOP":
                (result,) = self._stack
                return result
            self._follow(operation.name, argument)
        raise StorageError(f"{self._what} ends in its middle")

    def _follow(self, name: str, argument: Any) -> None:
        if name in ("PROTO", "FRAME"):
            return
        if name in _CONSTANTS:
            self._stack.append(argument)
        elif name in _SINGLE:
            self._stack.append(_SINGLE[name])
        elif name in _TUPLES:
            self._stack.append(tuple(self._pop(_TUPLES[name])))
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self._stack.append(self._memo[int(argument)])
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            self._remember(int(argument))
        elif name in self._others:
            self._others[name](argument)
        else:
            raise StorageError(f"{self._what} has the operation {name}, which is not read; nothing of it is taken")

    def _pop(self, count: int) -> list[Any]:
        """Return the last values, which leave the stack."""
        if len(self._stack) < count or _MARK in self._stack[-count:]:
            raise StorageError(f"{self._what} takes values that are not there")
        values = self._stack[-count:]
        del self._stack[-count:]
        return values

    def _pop_to_mark(self) -> list[Any]:
        values: list[Any] = []
        while (value := self._stack.pop()) is not _MARK:
            values.append(value)
        return values[::-1]

    def _remember(self, number: int) -> None:
        self._memo[number] = self._stack[-1]

    def _push_name(self, module: Any, name: Any) -> None:
        text = f"{module}.{name}"
        if text not in self._allowed:
            raise StorageError(
                f"{self._what} names {text!r}, which is not read; nothing of it is taken, and nothing ran"
            )
        self._stack.append(Name(text))

    def _append(self, values: list[Any]) -> None:
        self._expect(self._stack[-1], list).extend(values)

    def _set_items(self, values: list[Any]) -> None:
        self._expect(self._stack[-1], dict).update(zip(values[::2], values[1::2], strict=True))

    def _make(self, made_by: Any, arguments: Any) -> None:
        self._stack.append(Record(self._expect(made_by, Name), self._expect(arguments, tuple)))

    def _build(self, state: Any) -> None:
        self._expect(self._stack[-1], Record).state = state

    def _expect(self, value: Any, kind: type) -> Any:
        if type(value) is not kind:
            raise StorageError(f"{self._what} has a {type(value).__name__} where a {kind.__name__} belongs")
        return value
