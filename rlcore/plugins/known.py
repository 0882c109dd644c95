"""What is published where: the one place in which the core names plugins, and what it says when one is missing."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from rlcore.errors import MissingPluginError, did_you_mean, nearest
from rlcore.lazy import unknown
from rlcore.plugins.registry import Owner, Provided

PREFIX: Final = "rlcore-plugin-"


@dataclass(frozen=True)
class Published:
    """What a plugin provides, whether it is installed or not.

    Attributes:
        components: names by kind.
        lends: modules of its package by the names that they lend, by the package of the core that lends them on.
        presets: names of its presets, by algorithm.
        commands: that it adds to the command line, and what each does.
        for_tests: whether its components are for tests, and proposed to nobody who misspelled another.
    """

    components: Mapping[str, tuple[str, ...]]
    lends: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    presets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    for_tests: bool = False


# by the name of the plugin; its distribution is `rlcore-plugin-NAME`
PUBLISHED: Final = {
    "agents": Published(
        {},
        {"rlcore": {"Agent": "agent", "export_agent": "exporting", "load_agent": "loading", "set_stage": "stage"}},
        commands={
            "evaluate": "evaluate a trained run",
            "export": "write the policy of a trained run into one file, with its transforms inside",
            "watch": "show the policy of a trained run, in a window or as a video",
        },
    ),
    "atari": Published({"env": ("atari",)}),
    "cnn": Published({"model": ("impala-cnn", "nature-cnn")}),
    "compile": Published(
        {},
        {
            "rlcore.learners": {
                "CompiledUpdate": "compiled",
                "check_compiler": "compiling",
                "compiled_update": "compiling",
                "side_by_side": "side_by_side",
            }
        },
    ),
    "csv": Published({"logger": ("csv",)}, {"rlcore.loggers": {"CSVLogger": "logger"}}),
    "datasets": Published(
        {"buffer": ("dataset", "dataset-sequences", "mixed"), "hook": ("record",)},
        commands={"data": "record what a policy does as a dataset; show, check, convert and merge datasets"},
    ),
    "dcp": Published({"checkpointer": ("dcp",)}),
    "ddp": Published({"launcher": ("processes", "torchrun")}),
    "dqn": Published(
        {"loss": ("c51", "dqn", "qr-dqn", "r2d2"), "model": ("q-network", "recurrent-q-network")},
        presets={
            "c51": ("c51-classic-control", "c51-generic"),
            "dqn": ("dqn-atari", "dqn-classic-control", "dqn-generic"),
            "qr-dqn": ("qr-dqn-generic",),
            "r2d2": ("r2d2-generic",),
            "rainbow": ("rainbow-generic",),
        },
    ),
    "envpool": Published({"env": ("envpool",)}),
    "gymnasium": Published({"env": ("gymnasium",), "transform": ("observation-norm",)}),
    "learners": Published(
        {},
        {
            "rlcore": {
                "ALL_MODULES": "columns",
                "AlgorithmConfig": "config",
                "COMPONENT_LEARNER": "columns",
                "COMPONENT_OPTIMIZER": "columns",
                "COMPONENT_RL_MODULE": "columns",
                "Columns": "columns",
                "DEFAULT_MODULE_ID": "columns",
                "Learner": "learner",
                "LearnerGroup": "group",
                "MultiRLModule": "multi",
                "MultiRLModuleSpec": "multi",
                "PPOConfig": "ppo",
                "PPOTorchLearner": "ppo",
                "RLModule": "module",
                "RLModuleSpec": "module",
                "TorchLearner": "torch_learner",
                "override": "columns",
            }
        },
    ),
    "mbpo": Published(
        {"buffer": ("imagined-dataset", "imagined-replay"), "model": ("mbpo",)},
        presets={"mbpo": ("mbpo-generic",), "mopo": ("mopo-generic",)},
    ),
    "mlflow": Published({"logger": ("mlflow",)}, {"rlcore.loggers": {"MLFlowLogger": "logger"}}),
    "mlp": Published({"model": ("mlp",)}),
    "offline": Published(
        {"loss": ("bc", "cql", "discrete-cql", "iql", "td3-bc"), "model": ("iql",), "hook": ("fqe",)},
        presets={
            "bc": ("bc-generic",),
            "cql": ("cql-generic",),
            "discrete-cql": ("discrete-cql-generic",),
            "iql": ("iql-generic",),
            "td3-bc": ("td3-bc-generic",),
        },
    ),
    "optuna": Published(
        {"hook": ("sweep-trial",)},
        commands={"sweep": "search the settings of a config, by trials that a study file describes"},
    ),
    "parallel": Published({"collector": ("central", "each-step", "workers")}),
    "pettingzoo": Published({"env": ("pettingzoo",)}),
    "ppo": Published(
        {"estimator": ("gae",), "hook": ("explained-variance",), "loss": ("a2c", "ppo")},
        presets={
            "a2c": ("a2c-classic-control", "a2c-generic"),
            "ppo": ("ppo-atari", "ppo-classic-control", "ppo-generic", "ppo-mujoco"),
            "recurrent-ppo": ("recurrent-ppo-generic",),
        },
    ),
    "ray": Published({"collector": ("actors",), "launcher": ("ray",)}),
    "recurrent": Published({"model": ("gru", "lstm")}),
    "replay": Published({"buffer": ("hindsight", "prioritized", "prioritized-hindsight", "replay", "sequences")}),
    "reports": Published(
        {},
        {
            "rlcore.cli": {"train_seeds": "seeds.training"},
            "rlcore.front": {"read_metrics": "curves"},
            "rlcore.run": {"plot_runs": "plotting"},
        },
        commands={
            "compare": "compare settings over their seeds: mean, interquartile mean (IQM), 95% intervals, probability "
            "of improvement",
            "plot": "plot the curves of one or several runs on one figure",
            "report": "write one HTML page about one or several runs, with nothing outside of it",
            "runs": "list what has been trained",
        },
    ),
    "runners": Published({"hook": ("diagnostics",)}),
    "sac": Published(
        {
            "loss": ("crossq", "ddpg", "discrete-sac", "sac", "td3"),
            "model": ("actor-critic", "crossq", "discrete-actor-critic", "recurrent-actor-critic"),
        },
        presets={
            "crossq": ("crossq-generic",),
            "ddpg": ("ddpg-generic",),
            "discrete-sac": ("discrete-sac-generic",),
            "droq": ("droq-generic",),
            "recurrent-sac": ("recurrent-sac-generic",),
            "redq": ("redq-generic",),
            "sac": ("sac-generic", "sac-mujoco"),
            "td3": ("td3-generic",),
        },
    ),
    "spool": Published({}, commands={"sync": "send what the loggers of a run left waiting for their servers"}),
    "tensorboard": Published({"logger": ("tensorboard",)}, {"rlcore.loggers": {"TensorboardLogger": "logger"}}),
    "testing": Published(
        {
            "buffer": ("toy-data",),
            "checkpointer": ("toy",),
            "env": ("faulty", "toy", "toy-dict", "toy-pixels"),
            "estimator": ("toy",),
            "hook": ("faulty", "killer", "recorder", "toy"),
            "logger": ("toy",),
            "loss": ("toy",),
            "model": ("toy", "toy-memory"),
            "transform": ("toy",),
        },
        commands={
            "prove": "prove that a config's runs survive kills, stops and damage, on this machine; takes minutes"
        },
        for_tests=True,
    ),
    "torch": Published({"checkpointer": ("torch",)}),
    "torchrl": Published(
        {},
        {
            "rlcore.algorithms": {
                "OfflineToOnlineTrainer": "algorithms.offline_to_online",
                "TD3OptimizationStepper": "algorithms.steppers",
                **dict.fromkeys(
                    ("A2CTrainer", "OnPolicyTrainer", "PPOTrainer", "ReinforceTrainer"), "algorithms.on_policy"
                ),
                **dict.fromkeys(
                    ("CQLTrainer", "DDPGTrainer", "DQNTrainer", "IQLTrainer", "SACTrainer", "TD3Trainer"),
                    "algorithms.off_policy",
                ),
            },
            "rlcore.helpers": {
                "LoggerConfig": "helpers.logging_settings",
                "correct_for_frame_skip": "helpers.frames",
                "get_stats_random_rollout": "helpers.statistics",
                "make_collector_offpolicy": "helpers.collectors",
                "make_collector_onpolicy": "helpers.collectors",
                "make_dqn_actor": "helpers.actors",
                "make_dqn_loss": "helpers.dqn",
                "make_replay_buffer": "helpers.replay",
                "make_target_updater": "helpers.dqn",
                "make_trainer": "helpers.trainers",
                "parallel_env_constructor": "helpers.envs",
                "sync_async_collector": "helpers.collectors",
                "sync_sync_collector": "helpers.collectors",
                "transformed_env_constructor": "helpers.envs",
            },
        },
    ),
    "torchsnapshot": Published({"checkpointer": ("torchsnapshot",)}),
    "transforms": Published(
        {
            "transform": (
                "action-clip",
                "action-scale",
                "double-to-float",
                "flatten",
                "frame-stack",
                "last-step",
                "reward-norm",
                "reward-scale",
                "reward-sum",
                "running-observation-norm",
                "select",
                "step-counter",
                "time-feature",
            )
        }
    ),
    "video": Published(
        {"hook": ("video",)},
        {
            "rlcore": {
                "PixelRenderTransform": "pixel_render",
                "TensorDictRecorder": "tensordict_recorder",
                "VideoRecorder": "video_recorder",
                "write_mp4": "mp4",
            }
        },
    ),
    "vtrace": Published(
        {"estimator": ("vtrace",), "loss": ("appo", "impala")},
        presets={"appo": ("appo-generic",), "impala": ("impala-generic",)},
    ),
    "wandb": Published({"logger": ("wandb",)}, {"rlcore.loggers": {"WandbLogger": "logger"}}),
}


# optimizers of torch that no learner can use, and why
_REFUSED: Final = {
    "lbfgs": "asks for the loss several times in a step, by a closure, and the learner takes it once per minibatch",
    "muon": "steps matrices alone, and every layer has a bias besides",
    "sparseadam": "steps sparse gradients, and those of networks are dense",
}


def refused(kind: str, name: str) -> str:
    """Return `": why"` for something well known that cannot be a component, or an empty string."""
    why = _REFUSED.get(name.lower()) if kind == "optimizer" else None
    return "" if why is None else f": torch.optim has it, but it {why}"


def component_names(kind: str | None = None) -> dict[str, str]:
    """Return the plugin of each published component, of one kind or of all, in order of name."""
    return dict(
        sorted(
            (name, plugin)
            for plugin, published in PUBLISHED.items()
            for of, names in published.components.items()
            for name in names
            if kind in (None, of)
        )
    )


def kinds_of(name: str) -> list[str]:
    """Return the kinds of which a component of a name is published."""
    return [kind for published in PUBLISHED.values() for kind, names in published.components.items() if name in names]


def use_of(name: str) -> str:
    """Return what `use` says to name a published component, whichever plugins a config names besides."""
    plugin = component_names()[name]
    return name if plugin == name else f"{plugin}:{name}"


def distribution_of(name: str) -> str | None:
    """Return the distribution of a published component or plugin, or None for any other name."""
    plugin = component_names().get(name, name)
    return PREFIX + plugin if plugin in PUBLISHED else None


def published_presets() -> dict[str, str]:
    """Return the plugin of each published preset, and of each algorithm that has some."""
    return {
        name: plugin
        for plugin, published in PUBLISHED.items()
        for algorithm, presets in published.presets.items()
        for name in (algorithm, *presets)
    }


def guess(kind: str, name: str, plugins: Iterable[str]) -> str:
    """Return `"; did you mean 'X'?"` for a component of that kind, or which ones are published.

    Args:
        kind: of the component.
        name: that nothing has.
        plugins: names of installed plugins; one that is not in the table may provide what is like its name.
    """
    published = [name for name, plugin in component_names(kind).items() if not PUBLISHED[plugin].for_tests]
    candidates = [*published, *(plugin for plugin in plugins if plugin not in {*PUBLISHED, "core"})]
    if nearest(name, candidates) is not None or not published:
        return did_you_mean(name, candidates)
    return f"; well known: {', '.join(map(use_of, published))}"


def not_installed(need: str, package: str, reason: str = "") -> MissingPluginError:
    """Return the error for a package that is not installed, with the command that installs it.

    Args:
        need: what needs it, such as `"WandbLogger is provided by"`.
        package: its name for `pip`.
        reason: why it may not be seen although it is there.
    """
    return MissingPluginError(f"{need} {package}, which is not installed{reason}: pip install {package}")


def published(kind: str, name: str) -> Provided:
    """Return a published component, without a config that names it.

    Raises:
        PluginError: its plugin is not installed, or broken; says how to install it.
    """
    plugin = component_names(kind)[name]
    module = _module(plugin, "", f"{kind} {name!r}")
    component = next(one for one in module.provide_components() if (one.kind, one.name) == (kind, name))
    return Provided(component, Owner(plugin, PREFIX + plugin, _version(PREFIX + plugin)))


def lent_to(package: str) -> dict[str, tuple[str, str]]:
    """Return the names that a package of the core lends on: the plugin of each, and the module in it."""
    return {
        name: (plugin, module)
        for plugin, published in PUBLISHED.items()
        for name, module in published.lends.get(package, {}).items()
    }


def lend(package: str, name: str, need: str = "") -> Any:
    """Return a name that a plugin lends to a package of the core.

    Args:
        package: of the core.
        name: lent to it.
        need: what a user asked for, where that is not the name itself.

    Raises:
        PluginError: the plugin is not installed; says how to install it.
        AttributeError: nobody lends such a name.
    """
    lent = lent_to(package)
    if name not in lent:
        raise unknown(package, name)
    plugin, module = lent[name]
    return getattr(_module(plugin, f".{module}", need or f"{package}.{name}"), name)  # the table holds names


def _module(plugin: str, below: str, what: str) -> ModuleType:
    """Import a module of a plugin."""
    package = (PREFIX + plugin).replace("-", "_")
    try:
        return importlib.import_module(package + below)
    except ModuleNotFoundError as error:
        if error.name is None:
            raise
        lacking = error.name.partition(".")[0]
        if lacking == package:
            raise not_installed(f"{what} is provided by", PREFIX + plugin) from error
        raise not_installed(f"{what}, of {PREFIX + plugin}, needs", lacking) from error


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:  # its package lies on the path without being installed
        return "of unknown version"
