"""rlpyt's runners, samplers, algorithms and agents: names that put together a config, which rlcore runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlcore import Component, hookimpl

if TYPE_CHECKING:
    from rlcore_plugin_runners.affinity import make_affinity as make_affinity
    from rlcore_plugin_runners.affinity_codes import affinity_from_code as affinity_from_code
    from rlcore_plugin_runners.affinity_codes import encode_affinity as encode_affinity
    from rlcore_plugin_runners.affinity_codes import get_n_run_slots as get_n_run_slots
    from rlcore_plugin_runners.affinity_codes import prepend_run_slot as prepend_run_slot
    from rlcore_plugin_runners.affinity_codes import quick_affinity_code as quick_affinity_code
    from rlcore_plugin_runners.agents import AtariCatDqnAgent as AtariCatDqnAgent
    from rlcore_plugin_runners.agents import AtariDqnAgent as AtariDqnAgent
    from rlcore_plugin_runners.agents import AtariFfAgent as AtariFfAgent
    from rlcore_plugin_runners.agents import CatDqnAgent as CatDqnAgent
    from rlcore_plugin_runners.agents import CategoricalPgAgent as CategoricalPgAgent
    from rlcore_plugin_runners.agents import DdpgAgent as DdpgAgent
    from rlcore_plugin_runners.agents import DqnAgent as DqnAgent
    from rlcore_plugin_runners.agents import FfAgent as FfAgent
    from rlcore_plugin_runners.agents import GaussianPgAgent as GaussianPgAgent
    from rlcore_plugin_runners.agents import MujocoFfAgent as MujocoFfAgent
    from rlcore_plugin_runners.agents import SacAgent as SacAgent
    from rlcore_plugin_runners.agents import Td3Agent as Td3Agent
    from rlcore_plugin_runners.algos import A2C as A2C
    from rlcore_plugin_runners.algos import DDPG as DDPG
    from rlcore_plugin_runners.algos import DQN as DQN
    from rlcore_plugin_runners.algos import PPO as PPO
    from rlcore_plugin_runners.algos import R2D1 as R2D1
    from rlcore_plugin_runners.algos import SAC as SAC
    from rlcore_plugin_runners.algos import TD3 as TD3
    from rlcore_plugin_runners.algos import CategoricalDQN as CategoricalDQN
    from rlcore_plugin_runners.collectors import CpuEvalCollector as CpuEvalCollector
    from rlcore_plugin_runners.collectors import CpuResetCollector as CpuResetCollector
    from rlcore_plugin_runners.collectors import CpuWaitResetCollector as CpuWaitResetCollector
    from rlcore_plugin_runners.collectors import GpuEvalCollector as GpuEvalCollector
    from rlcore_plugin_runners.collectors import GpuResetCollector as GpuResetCollector
    from rlcore_plugin_runners.collectors import GpuWaitResetCollector as GpuWaitResetCollector
    from rlcore_plugin_runners.collectors import SerialEvalCollector as SerialEvalCollector
    from rlcore_plugin_runners.context import get_log_dir as get_log_dir
    from rlcore_plugin_runners.context import logger_context as logger_context
    from rlcore_plugin_runners.context import set_snapshot_gap as set_snapshot_gap
    from rlcore_plugin_runners.envs import AtariEnv as AtariEnv
    from rlcore_plugin_runners.envs import gym_make as gym_make
    from rlcore_plugin_runners.experiments import run_experiments as run_experiments
    from rlcore_plugin_runners.recurrent_agents import AlternatingAtariLstmAgent as AlternatingAtariLstmAgent
    from rlcore_plugin_runners.recurrent_agents import AlternatingMujocoLstmAgent as AlternatingMujocoLstmAgent
    from rlcore_plugin_runners.recurrent_agents import AtariLstmAgent as AtariLstmAgent
    from rlcore_plugin_runners.recurrent_agents import AtariR2d1Agent as AtariR2d1Agent
    from rlcore_plugin_runners.recurrent_agents import AtariR2d1AlternatingAgent as AtariR2d1AlternatingAgent
    from rlcore_plugin_runners.recurrent_agents import LstmAgent as LstmAgent
    from rlcore_plugin_runners.recurrent_agents import MujocoLstmAgent as MujocoLstmAgent
    from rlcore_plugin_runners.recurrent_agents import R2d1Agent as R2d1Agent
    from rlcore_plugin_runners.recurrent_agents import R2d1AlternatingAgent as R2d1AlternatingAgent
    from rlcore_plugin_runners.recurrent_agents import RecurrentCategoricalPgAgent as RecurrentCategoricalPgAgent
    from rlcore_plugin_runners.recurrent_agents import RecurrentGaussianPgAgent as RecurrentGaussianPgAgent
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
    from rlcore_plugin_runners.samplers import NoOverlapAlternatingSampler as NoOverlapAlternatingSampler
    from rlcore_plugin_runners.samplers import SerialSampler as SerialSampler
    from rlcore_plugin_runners.sync import SyncRl as SyncRl
    from rlcore_plugin_runners.sync import SyncRlEval as SyncRlEval
    from rlcore_plugin_runners.trajectories import AtariTrajInfo as AtariTrajInfo
    from rlcore_plugin_runners.trajectories import TrajInfo as TrajInfo
    from rlcore_plugin_runners.variants import VariantLevel as VariantLevel
    from rlcore_plugin_runners.variants import load_variant as load_variant
    from rlcore_plugin_runners.variants import make_variants as make_variants
    from rlcore_plugin_runners.variants import save_variant as save_variant
    from rlcore_plugin_runners.variants import update_config as update_config

_MODULES = {
    "affinity": "make_affinity",
    "affinity_codes": "affinity_from_code encode_affinity get_n_run_slots prepend_run_slot quick_affinity_code",
    "agents": "AtariCatDqnAgent AtariDqnAgent AtariFfAgent CatDqnAgent CategoricalPgAgent DdpgAgent DqnAgent FfAgent "
    "GaussianPgAgent MujocoFfAgent SacAgent Td3Agent",
    "algos": "A2C CategoricalDQN DDPG DQN PPO R2D1 SAC TD3",
    "collectors": "CpuEvalCollector CpuResetCollector CpuWaitResetCollector GpuEvalCollector GpuResetCollector "
    "GpuWaitResetCollector SerialEvalCollector",
    "context": "get_log_dir logger_context set_snapshot_gap",
    "envs": "AtariEnv gym_make",
    "experiments": "run_experiments",
    "recurrent_agents": "AlternatingAtariLstmAgent AlternatingMujocoLstmAgent AtariLstmAgent AtariR2d1Agent "
    "AtariR2d1AlternatingAgent LstmAgent MujocoLstmAgent R2d1Agent R2d1AlternatingAgent RecurrentCategoricalPgAgent "
    "RecurrentGaussianPgAgent",
    "runners": "AsyncRl AsyncRlEval MinibatchRl MinibatchRlEval",
    "samplers": "AlternatingSampler AsyncCpuSampler AsyncGpuSampler AsyncSerialSampler CpuSampler "
    "GpuSampler NoOverlapAlternatingSampler SerialSampler",
    "sync": "SyncRl SyncRlEval",
    "trajectories": "AtariTrajInfo TrajInfo",
    "variants": "VariantLevel load_variant make_variants save_variant update_config",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = [*_MODULE_OF, "provide_components"]


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("model", "policy-network", f"{__name__}.own_model:PolicyNetwork", summary="a ModelCls of rlpyt"),
        Component("model", "value-network", f"{__name__}.own_model:ValueNetwork", summary="a ModelCls with its target"),
        Component("hook", "diagnostics", f"{__name__}.diagnostics:Diagnostics", summary="writes rlpyt's progress.csv"),
    ]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
