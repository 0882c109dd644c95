"""The kernel of a notebook, where this process is one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

# of an output: its text by media type, of which a notebook shows the richest
Output = Mapping[str, str]


def in_kernel() -> bool:
    """Return whether this process is the kernel of a notebook; IPython is asked where it is imported already."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")  # the shell of a terminal has none, and shows texts alone


def show(output: Output) -> Any:
    """Show an output below the running cell; return its handle, with which `replace` shows another in its place."""
    from IPython.display import display

    return display(dict(output), raw=True, display_id=True)


def replace(handle: Any, output: Output) -> None:
    """Show an output in the place of an earlier one."""
    handle.update(dict(output), raw=True)
