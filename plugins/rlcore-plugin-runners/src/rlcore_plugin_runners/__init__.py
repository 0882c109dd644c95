"""rlpyt's runners, samplers, algorithms and agents: names that put together a config, which rlcore runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlcore import Component, hookimpl

if TYPE_CHECKING:
    from rlcore_plugin_runners.affinity import make_affinity as make_affinity
    from rlcore_plugin_runners.agents import AtariCatDqnAgent as AtariCatDqnAgent
    from rlcore_plugin_runners.agents import AtariDqnAgent as AtariDqnAgent
    from rlcore_plugin_runners.agents import AtariFfAgent as AtariFfAgent
    from rlcore_plugin_runners.agents import CatDqnAgent as CatDqnAgent
    from rlcore_plugin_runners.agents import DdpgAgent as DdpgAgent
    from rlcore_plugin_runners.agents import DqnAgent as DqnAgent
    from rlcore_plugin_runners.agents import FfAgent as FfAgent
    from rlcore_plugin_runners.agents import MujocoFfAgent as MujocoFfAgent
    from rlcore_plugin_runners.agents import SacAgent as SacAgent
    from rlcore_plugin_runners.agents import Td3Agent as Td3Agent
    from rlcore_plugin_runners.algos import A2C as A2C
    from rlcore_plugin_runners.algos import DDPG as DDPG
    from rlcore_plugin_runners.algos import DQN as DQN
    from rlcore_plugin_runners.algos import PPO as PPO
    from rlcore_plugin_runners.algos import SAC as SAC
    from rlcore_plugin_runners.algos import TD3 as TD3
    from rlcore_plugin_runners.algos import CategoricalDQN as CategoricalDQN
    from rlcore_plugin_runners.context import logger_context as logger_context
    from rlcore_plugin_runners.context import set_snapshot_gap as set_snapshot_gap
    from rlcore_plugin_runners.envs import AtariEnv as AtariEnv
    from rlcore_plugin_runners.envs import gym_make as gym_make
    from rlcore_plugin_runners.runners import AsyncRl as AsyncRl
    from rlcore_plugin_runners.runners import AsyncRlEval as AsyncRlEval
    from rlcore_plugin_runners.runners import MinibatchRl as MinibatchRl
    from rlcore_plugin_runners.runners import MinibatchRlEval as MinibatchRlEval
    from rlcore_plugin_runners.samplers import AlternatingSampler as AlternatingSampler
    from rlcore_plugin_runners.samplers import AsyncCpuSampler as AsyncCpuSampler
    from rlcore_plugin_runners.samplers import AsyncGpuSampler as AsyncGpuSampler
    from rlcore_plugin_runners.samplers import AsyncSerialSampler as AsyncSerialSampler
    from rlcore_plugin_runners.samplers import CpuSampler as CpuSampler
    from rlcore_plugin_runners.samplers import GpuSampler as GpuSampler
    from rlcore_plugin_runners.samplers import SerialSampler as SerialSampler
    from rlcore_plugin_runners.sync import SyncRl as SyncRl
    from rlcore_plugin_runners.sync import SyncRlEval as SyncRlEval
    from rlcore_plugin_runners.trajectories import AtariTrajInfo as AtariTrajInfo
    from rlcore_plugin_runners.trajectories import TrajInfo as TrajInfo

_MODULES = {
    "affinity": "make_affinity",
    "agents": "AtariCatDqnAgent AtariDqnAgent AtariFfAgent CatDqnAgent DdpgAgent DqnAgent FfAgent MujocoFfAgent "
    "SacAgent Td3Agent",
    "algos": "A2C CategoricalDQN DDPG DQN PPO SAC TD3",
    "context": "logger_context set_snapshot_gap",
    "envs": "AtariEnv gym_make",
    "runners": "AsyncRl AsyncRlEval MinibatchRl MinibatchRlEval",
    "samplers": "AlternatingSampler AsyncCpuSampler AsyncGpuSampler AsyncSerialSampler CpuSampler "
    "GpuSampler SerialSampler",
    "sync": "SyncRl SyncRlEval",
    "trajectories": "AtariTrajInfo TrajInfo",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = [*_MODULE_OF, "provide_components"]


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("hook", "diagnostics", f"{__name__}.diagnostics:Diagnostics", summary="writes rlpyt's progress.csv"),
    ]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
