"""Building parts one after another, each seeing those before it, and opening what they are saved with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.assembly.backends import open_backend as open_backend
    from rlcore.assembly.env_maker import EnvMaker as EnvMaker
    from rlcore.assembly.importing import import_named as import_named
    from rlcore.assembly.saved import Saved as Saved
    from rlcore.assembly.saved import read_saved as read_saved
    from rlcore.assembly.saved_parts import AgentParts as AgentParts
    from rlcore.assembly.saved_parts import PartsBuilder as PartsBuilder
    from rlcore.assembly.saved_policies import of_policy as of_policy
    from rlcore.config.own_modules import meant as meant
    from rlcore.config.sections import find_component as find_component
    from rlcore.plugins.host import PluginHost as PluginHost
    from rlcore.plugins.known import published as published

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.assembly.backends": "open_backend",
        "rlcore.assembly.env_maker": "EnvMaker",
        "rlcore.assembly.importing": "import_named",
        "rlcore.config.own_modules": "meant",
        "rlcore.config.sections": "find_component",
        "rlcore.plugins.host": "PluginHost",
        "rlcore.plugins.known": "published",
        "rlcore.assembly.saved": "Saved read_saved",
        "rlcore.assembly.saved_parts": "AgentParts PartsBuilder",
        "rlcore.assembly.saved_policies": "of_policy",
    },
)
