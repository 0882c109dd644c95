"""The simulator behind the env: it is made by its name, and what cannot be made is told before the first frame."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, Final

import torch
import vmas
from vmas.simulator.environment import Environment
from vmas.simulator.scenario import BaseScenario

from rlcore.config import import_named
from rlcore.errors import FROM_OUTSIDE, ConfigError, RlcoreError, describe, did_you_mean
from rlcore_plugin_vmas.config import Config

_SCENARIOS: Final = (*vmas.scenarios, *vmas.mpe_scenarios, *vmas.debug_scenarios)
# what has a key of its own, or would change what a step returns
_TAKEN: Final = frozenset(inspect.signature(vmas.make_env).parameters) - {"kwargs"}


def made_worlds(config: Config, worlds: int, device: torch.device) -> Environment:
    """Return the simulator of so many worlds.

    Raises:
        ConfigError: there is no such scenario, it takes no such arguments, or it cannot be made.
    """
    taken = sorted(_TAKEN & set(config.kwargs))
    if taken:
        raise ConfigError(
            f"[env] kwargs: {', '.join(taken)} is no argument of a scenario; the device is that of the run, and "
            "[env] has scenario, num_envs, max_steps and continuous_actions"
        )
    scenario = _scenario(config.scenario)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Scenario kwargs")
            return vmas.make_env(
                scenario,
                num_envs=worlds,
                device=device,
                continuous_actions=config.continuous_actions,
                max_steps=config.max_steps,
                seed=None,
                clamp_actions=True,
                terminated_truncated=True,
                **config.kwargs,
            )
    except (*FROM_OUTSIDE, RlcoreError):
        raise
    except BaseException as error:
        raise ConfigError(
            f"[env] scenario = {config.scenario!r} cannot be made by VMAS with kwargs = {config.kwargs}: "
            f"{describe(error)}"
        ) from error


def _scenario(name: str) -> str | BaseScenario:
    if ":" in name:
        scenario: Any = import_named(name, "[env] scenario")()
        if not isinstance(scenario, BaseScenario):
            raise ConfigError(
                f"[env] scenario = {name!r} makes a {type(scenario).__name__}; derive it from "
                "vmas.simulator.scenario.BaseScenario"
            )
        return scenario
    if name not in _SCENARIOS:
        raise ConfigError(
            f"[env] scenario = {name!r}: VMAS has no such scenario{did_you_mean(name, _SCENARIOS)}; there are "
            f"{', '.join(_SCENARIOS)}, or 'module:Class' of your own"
        )
    return name
