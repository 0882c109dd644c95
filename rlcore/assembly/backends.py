"""Opening a checkpoint back end by its name, without a config that says how to build it."""

from __future__ import annotations

from rlcore.checkpoints.backend import Backend
from rlcore.config.core import DEFAULT_USE
from rlcore.config.file import BACKEND_ALIASES, backend_of_environment
from rlcore.config.sections import find_component
from rlcore.plugins.host import PluginHost
from rlcore.types.context import Context


def open_backend(name: str | None = None) -> Backend:
    """Return the back end of a name, built with its defaults.

    Args:
        name: default: the one that the environment variable `CKPT_BACKEND` names, or torch.

    Raises:
        PluginError: it is not installed; says how to install it.
    """
    use = BACKEND_ALIASES.get(name or "", name) or backend_of_environment() or DEFAULT_USE["checkpoint"]
    provided, config = find_component(PluginHost(), "checkpointer", use, {})
    context = Context.alone("checkpoints").for_component("checkpointer", provided.component.name)
    return Backend(provided.build(config, context), provided.component.name)
