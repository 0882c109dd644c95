"""What `[ranks] use` may name, and whether rlcore starts the ranks or is itself started as one of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError, RlcoreError
from rlcore.plugins.host import PluginHost
from rlcore.types.launcher import JoiningLauncher
from rlcore.types.optional import offers

if TYPE_CHECKING:
    from collections.abc import Mapping

# what `[ranks] use` may say for short
LAUNCHERS: Final = {"processes": "ddp:processes", "ray": "ray:ray", "torchrun": "ddp:torchrun"}
AUTO: Final = "auto"
# which torchrun sets for the processes that it starts
_TORCHRUN: Final = "TORCHELASTIC_RUN_ID"
_TORCHRUN_SIZE: Final = "WORLD_SIZE"


def launcher_named(use: str) -> str:
    """Return the component that `[ranks] use` names: in a process that torchrun started, `auto` is `torchrun`."""
    if use == AUTO:
        use = "torchrun" if _TORCHRUN in os.environ else "processes"
    return LAUNCHERS.get(use, use)


def joins_ranks(ranks: Mapping[str, Any], host: PluginHost | None = None) -> bool:
    """Return whether a section `[ranks]` names a launcher whose ranks something else starts.

    What is wrong with the section, whoever validates it says.

    Args:
        ranks: the section, as it was read.
        host: of the plugins; default: one of its own.
    """
    use = ranks.get("use", AUTO)
    if not isinstance(use, str) or launcher_named(use) == LAUNCHERS["processes"]:
        return False
    host = host or PluginHost()
    try:
        host.load_for(launcher_named(use))
        return offers(host.find("launcher", launcher_named(use)).target(), JoiningLauncher)
    except RlcoreError:
        return False


def check_alone(why: str) -> None:
    """Refuse to train in a process that torchrun started beside others, which would train the same.

    Args:
        why: each trains by itself, and what to do.

    Raises:
        ConfigError: it is one of several.
    """
    size = os.environ.get(_TORCHRUN_SIZE, "1") if _TORCHRUN in os.environ else "1"
    if size != "1":
        raise ConfigError(f"torchrun started {size} processes, and {why.format(size=size)}")
