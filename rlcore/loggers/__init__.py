"""Numbers and media on their way from the loop to the loggers; and the loggers by their class names.

`Logger` is the base of them all, and of a logger of your own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlcore.lazy import lazy
from rlcore.plugins.known import lend, lent_to

if TYPE_CHECKING:
    from rlcore_plugin_torchrl.helpers.loggers import generate_exp_name as generate_exp_name
    from rlcore_plugin_torchrl.helpers.loggers import get_logger as get_logger

    from rlcore.loggers import media as media
    from rlcore.loggers import values as values
    from rlcore.loggers.base import Logger as Logger

__all__, __getattr__, __dir__ = lazy(
    __name__, {"rlcore.loggers": "media values", "rlcore.loggers.base": "Logger"}, partial(lend, __name__)
)
__all__ += sorted(lent_to(__name__))
