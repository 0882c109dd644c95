"""Tools for the tests of plugins: toy parts, a small run of them, and a contract suite for every kind of component.

Names are resolved when they are first used, since the plugin module beside them must stay light. Nothing here is used
by a run, except the toy parts when a config names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.state.tree import through_checkpoint as through_checkpoint
    from rlcore_plugin_testing.compare import difference as difference
    from rlcore_plugin_testing.compare import snapshot as snapshot
    from rlcore_plugin_testing.light_import import check_light_import as check_light_import
    from rlcore_plugin_testing.processes import Processes as Processes
    from rlcore_plugin_testing.resumed import check_resumed as check_resumed
    from rlcore_plugin_testing.small_run import TOY_CONFIG as TOY_CONFIG
    from rlcore_plugin_testing.small_run import make_config as make_config
    from rlcore_plugin_testing.small_run import make_run as make_run
    from rlcore_plugin_testing.small_run import make_trainer as make_trainer

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.state.tree": "through_checkpoint",
        "rlcore_plugin_testing.compare": "difference snapshot",
        "rlcore_plugin_testing.light_import": "check_light_import",
        "rlcore_plugin_testing.processes": "Processes",
        "rlcore_plugin_testing.resumed": "check_resumed",
        "rlcore_plugin_testing.small_run": "TOY_CONFIG make_config make_run make_trainer",
    },
)
