"""Where the learners of a group run: here, in processes, or as actors of Ray."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rlcore.errors import ConfigError

if TYPE_CHECKING:
    from rlcore_plugin_learners.config import AlgorithmConfig
    from rlcore_plugin_learners.crew import Crew
    from rlcore_plugin_learners.multi import MultiRLModuleSpec


def crew_of(config: AlgorithmConfig, spec: MultiRLModuleSpec, deadline: float, placement_group: Any) -> Crew | None:
    """Return what starts and reaches the learners that are elsewhere; None for one that is here.

    Raises:
        ConfigError: the config or the arguments ask for Ray, which is not there or not asked for.
    """
    if not config.num_learners:
        told = "placement_group" if placement_group is not None else "custom_resources_per_learner"
        if placement_group is not None or config.custom_resources_per_learner:
            raise ConfigError(f"{told}: the one learner is in this process, and nowhere placed; set num_learners")
        return None
    launcher = config.launcher
    if launcher == "auto":
        launcher = "ray" if placement_group is not None or _is_connected_to_ray() else "processes"
    if launcher == "processes" and placement_group is not None:
        raise ConfigError("placement_group: only actors of Ray are placed; set learners(launcher='ray')")
    if launcher == "processes":
        from rlcore_plugin_learners.processes import ProcessCrew

        return ProcessCrew(config, spec, deadline)
    try:
        from rlcore_plugin_ray.learners import ActorCrew
    except ImportError as error:
        raise ConfigError(
            f"learners as actors of Ray: {error}; pip install rlcore-plugin-ray, or set learners(launcher='processes')"
        ) from error
    crew: Crew = ActorCrew(config, spec, deadline, placement_group)
    return crew


def _is_connected_to_ray() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())
