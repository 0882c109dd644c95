"""Functions with a code object of their own, since the compiler keeps its graphs by code object."""

from __future__ import annotations

import types
from typing import Any


def with_own_code(function: Any) -> types.FunctionType:
    """Return a copy of a function that shares no graph, and no count of shapes, with another copy."""
    return types.FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
