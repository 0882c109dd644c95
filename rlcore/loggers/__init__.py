"""Numbers and media on their way from the loop to the loggers; and the loggers by their class names.

`Logger` is the base of them all, and of a logger of your own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy
from rlcore.plugins.known import lent_to

if TYPE_CHECKING:
    from rlcore.loggers import media as media
    from rlcore.loggers import values as values
    from rlcore.loggers.by_name import Logger as Logger
    from rlcore.loggers.by_name import generate_exp_name as generate_exp_name
    from rlcore.loggers.by_name import get_logger as get_logger

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.loggers": "media values",
        "rlcore.loggers.by_name": f"Logger generate_exp_name get_logger {' '.join(lent_to(__name__))}",
    },
)
