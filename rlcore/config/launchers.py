"""What `[ranks] use` may name: the launcher to which a run with several processes is handed over."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

from rlcore.config.core import RanksConfig
from rlcore.errors import ConfigError
from rlcore.plugins.host import PluginHost
from rlcore.types.launcher import Launcher
from rlcore.types.optional import missing

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


def launcher_class(ranks: RanksConfig, disable: Iterable[str] = ()) -> type[Launcher]:
    """Return the class of the launcher that `[ranks]` names.

    Args:
        ranks: the section.
        disable: plugins that must not be imported.

    Raises:
        PluginError: there is none of that name; says how to install it.
        ConfigError: it trains nothing.
    """
    host = PluginHost(disable=disable)
    host.load_for(launcher_named(ranks.use))
    provided = host.find("launcher", launcher_named(ranks.use))
    target: Any = provided.target()
    if lacking := missing(target, Launcher):
        raise ConfigError(
            f"[ranks] use: {provided} trains nothing, as it has no {', '.join(lacking)}; derive it from "
            "rlcore_plugin_ddp.launchers.ForkingLauncher"
        )
    launcher: type[Launcher] = target
    return launcher


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
