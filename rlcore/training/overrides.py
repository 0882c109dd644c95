"""Whether two methods of a part still say the same, whoever overrode one of them."""

from __future__ import annotations


def speaks_for(part: object, method: str, other: str) -> bool:
    """Return whether what a method returns is still true of another one.

    It is not of a subclass that overrides the other alone.
    """
    for kind in type(part).__mro__:
        if method in vars(kind):
            return True
        if other in vars(kind):
            return False
    return True
