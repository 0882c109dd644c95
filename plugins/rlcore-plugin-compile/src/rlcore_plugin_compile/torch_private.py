"""What torch's compiler keeps to itself and is used here; without it, an update is compiled as torch does it.

Names that begin with an underscore may go or change with any version of torch. Each is looked up once, when what uses
it is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def look_up(owner: object, name: str) -> Any:
    """Return a private attribute of torch, or None where this version has none."""
    return getattr(owner, name, None)


def compiler_errors() -> tuple[type[Exception], ...]:
    """Return the errors of a function that cannot be compiled; none where this version of torch has others."""
    error = look_up(look_up(look_up(torch, "_dynamo"), "exc"), "TorchDynamoException")
    return (error,) if isinstance(error, type) and issubclass(error, Exception) else ()


def graph_compiler() -> Callable[..., Any] | None:
    """Return what makes kernels of a graph of tensors, `compile(graph, examples, options=…)`; None without one."""
    import torch._inductor

    return look_up(torch._inductor, "compile")  # type: ignore[no-any-return]
