"""What plugins are published, and what each brings: the one place in which the core names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

PREFIX: Final = "rlcore-plugin-"


@dataclass(frozen=True)
class Published:
    """What a plugin provides, whether it is installed or not.

    Attributes:
        components: names by kind.
        lends: modules of its package by the names that they lend, by the package that lends them on.
        commands: that it adds to the command line, and what each does.
        for_tests: whether its components are for tests, and proposed to nobody who misspelled another.
        of_core: whether configs name its components as those of the core: by their names alone, or as `core:NAME`.
        adapts: packages of other libraries, of which it adapts the parts that scripts hand over.
    """

    components: Mapping[str, tuple[str, ...]]
    lends: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    for_tests: bool = False
    of_core: bool = False
    adapts: tuple[str, ...] = ()


def _lent(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name, of the names that each module lends, in one text."""
    return {name: module for module, names in modules.items() for name in names.split()}


# by the name of the plugin; its distribution is `rlcore-plugin-NAME`
PUBLISHED: Final = {
    "agents": Published(
        {},
        {
            "rlcore": {
                "Agent": "agent",
                "ExplorationType": "exploration",
                "exploration_type": "exploration",
                "export_agent": "exporting",
                "load_agent": "loading",
                "rollout": "rollout",
                "set_exploration_type": "exploration",
                "set_stage": "stage",
            }
        },
        commands={
            "evaluate": "evaluate a trained run",
            "export": "write the policy of a trained run into one file, with its transforms inside",
            "watch": "show the policy of a trained run, in a window or as a video",
        },
    ),
    "assistants": Published({}, commands={"mcp": "serve runs to an assistant", "skill": "print where the skill is"}),
    "atari": Published({"env": ("atari",)}),
    "bench": Published({"hook": ("learning-curve",)}, commands={"bench": "compare methods over tasks and seeds"}),
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
    "console": Published({}, commands={"fork": "copy a run up to a checkpoint", "serve": "serve runs to a browser"}),
    "csv": Published({"logger": ("csv",)}, {"rlcore.loggers": {"CSVLogger": "logger"}}),
    "datasets": Published(
        {"buffer": ("dataset", "dataset-sequences", "mixed"), "hook": ("record",)},
        commands={"data": "record what a policy does as a dataset; show, check, convert and merge datasets"},
    ),
    "dcp": Published({"checkpointer": ("dcp",)}),
    "ddp": Published({"launcher": ("processes", "torchrun")}, {"rlcore.training": {"merged": "merging"}}),
    "device": Published({"collector": ("device",)}),
    "dqn": Published({"loss": ("c51", "dqn", "qr-dqn", "r2d2"), "model": ("q-network", "recurrent-q-network")}),
    "dreamer": Published({"model": ("dreamer",), "loss": ("dreamer",), "optimizer": ("laprop",)}),
    "envpool": Published({"env": ("envpool",)}),
    "flashsac": Published(
        {
            "hook": ("resets",),
            "loss": ("categorical-sac",),
            "model": ("blocks",),
            "transform": ("return-scale",),
        },
    ),
    "gymnasium": Published({"env": ("gymnasium",), "transform": ("observation-norm",)}),
    "health": Published({"hook": ("health",)}, of_core=True),
    "import": Published({}, commands={"import": "make a run folder of a model that another library trained"}),
    "jax": Published({"env": ("jax",)}),
    "learners": Published(
        {},
        {
            "rlcore": _lent(
                {
                    "apis": "QNetAPI TARGET_NETWORK_ACTION_DIST_INPUTS TargetNetworkAPI ValueFunctionAPI",
                    "appo": "APPOConfig APPOTorchLearner DefaultAPPOTorchRLModule",
                    "bc": "BCConfig BCTorchLearner",
                    "columns": "ALL_MODULES COMPONENT_LEARNER COMPONENT_METRICS_LOGGER COMPONENT_OPTIMIZER "
                    "COMPONENT_RL_MODULE Columns DEFAULT_MODULE_ID override",
                    "config": "AlgorithmConfig",
                    "dqn": "DQNConfig DQNTorchLearner",
                    "dqn_module": "DefaultDQNTorchRLModule",
                    "episodes": "SingleAgentEpisode",
                    "group": "LearnerGroup",
                    "impala": "IMPALAConfig IMPALATorchLearner",
                    "learner": "Learner",
                    "metrics": "MetricsLogger",
                    "model_config": "DefaultModelConfig",
                    "module": "RLModule RLModuleSpec TorchRLModule",
                    "multi": "MultiRLModule MultiRLModuleSpec",
                    "ppo": "PPOConfig PPOTorchLearner",
                    "sac": "SACConfig SACTorchLearner",
                    "sac_module": "DefaultSACTorchRLModule",
                    "sample_batches": "ModuleID MultiAgentBatch SampleBatch TensorType",
                    "torch_learner": "TorchLearner",
                }
            )
        },
    ),
    "mbpo": Published({"buffer": ("imagined-dataset", "imagined-replay"), "model": ("mbpo",)}),
    "mlflow": Published({"logger": ("mlflow",)}, {"rlcore.loggers": {"MLFlowLogger": "logger"}}),
    "mlp": Published({"model": ("mlp",)}),
    "notebook": Published(
        {"hook": ("notebook",)},
        {
            "rlcore_plugin_agents": {"agent_html": "pictures"},
            "rlcore_plugin_presets": {"notebook_display": "display", "run_html": "pictures"},
        },
    ),
    "offline": Published({"loss": ("bc", "cql", "discrete-cql", "iql", "td3-bc"), "model": ("iql",), "hook": ("fqe",)}),
    "optuna": Published(
        {"hook": ("sweep-trial",)},
        commands={"sweep": "search the settings of a config, by trials that a study file describes"},
    ),
    "parallel": Published({"collector": ("central", "each-step", "workers")}),
    "pettingzoo": Published({"env": ("pettingzoo",)}),
    "pqn": Published({"loss": ("pqn",), "model": ("normed-q-network", "recurrent-normed-q-network")}),
    "ppo": Published({"estimator": ("gae",), "hook": ("explained-variance",), "loss": ("a2c", "ppo")}),
    "presets": Published(
        {},
        {
            "rlcore": _lent({"algorithms": "A2C C51 CrossQ DDPG DQN DiscreteSAC PPO R2D2 RecurrentPPO SAC TD3 preset"}),
            "rlcore.config": {"is_example": "example"},
        },
        commands={"init": "write a config to begin with: a preset for an algorithm and an environment"},
    ),
    "ray": Published({"collector": ("actors",), "launcher": ("ray",)}),
    "recurrent": Published({"model": ("gru", "lstm")}),
    "replay": Published({"buffer": ("hindsight", "prioritized", "prioritized-hindsight", "replay", "sequences")}),
    "reports": Published(
        {},
        {
            "rlcore.cli": {"train_seeds": "seeds.training"},
            "rlcore_plugin_presets": {"read_metrics": "curves"},
            "rlcore.run": {"plot_runs": "plotting"},
        },
        commands={
            "ckpt": "list, verify, show, prune or convert the checkpoints of a run",
            "compare": "compare settings over their seeds: mean, IQM, 95% intervals, probability of improvement",
            "plot": "plot the curves of one or several runs on one figure",
            "report": "write one HTML page about one or several runs, with nothing outside of it",
            "runs": "list what has been trained",
        },
    ),
    "rsl-rl": Published({"env": ("rsl-rl",), "hook": ("env-log",), "loss": ("adaptive-ppo",), "model": ("rsl-rl",)}),
    "runners": Published({"hook": ("diagnostics",), "model": ("policy-network", "value-network")}),
    "sac": Published(
        {
            "loss": ("crossq", "ddpg", "discrete-sac", "sac", "td3"),
            "model": ("actor-critic", "crossq", "discrete-actor-critic", "recurrent-actor-critic"),
        },
    ),
    "share": Published(
        {},
        commands={
            "plugins.search": "search an index of plugins, installed or not",
            "pull": "pull a run, policy or dataset that was pushed; nothing of it is run",
            "push": "push a run, policy or dataset to a folder, an object store or the Hugging Face hub",
        },
    ),
    "spool": Published({}, commands={"sync": "send what the loggers of a run left waiting for their servers"}),
    "tdmpc2": Published({"loss": ("tdmpc2",), "model": ("tdmpc2",)}),
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
        {"rlcore": {"check_env_specs": "env_specs"}},
        commands={
            "config.explain": "print every key: its value, where the value comes from, what it means",
            "config.schema": "print a JSON schema of everything installed, for editors",
            "env": "check an environment: whether it can be trained on",
            "plugins.doctor": "find conflicts, broken and slow plugins, each with the fix",
            "plugins.new": "make a package for a plugin of your own: a component that works, with tests, an example "
            "and workflows",
            "plugins.order": "show which hooks each loop point calls, in order",
            "plugins.show": "show the components of one plugin and their config keys",
            "prove": "prove that a config's runs survive kills, stops and damage, on this machine; takes minutes",
        },
        for_tests=True,
    ),
    "torch": Published({"checkpointer": ("torch",)}),
    "torch-envs": Published({"env": ("torch-envs",)}),
    "torchrl": Published(
        {
            **dict.fromkeys(("buffer", "env", "estimator", "loss", "model"), ("torchrl",)),
            "hook": (
                "batch-sub-sampler",
                "clear-cuda-cache",
                "count-frames-log",
                "early-stopping",
                "log-scalar",
                "log-timing",
                "reward-normalizer",
                "select-keys",
                "update-weights",
            ),
        },
        {
            "rlcore": {
                "BatchSubSampler": "hooks.batch_sub_sampler",
                "ClearCudaCache": "hooks.clear_cuda_cache",
                "CountFramesLog": "hooks.count_frames",
                "DefaultOptimizationStepper": "hooks.optimization_stepper",
                "EarlyStopping": "hooks.early_stopping",
                "LRSchedulerHook": "hooks.lr_scheduler",
                **_lent({"hooks.log_scalar": "LogReward LogScalar"}),
                "LogTiming": "hooks.timing",
                "LogValidationReward": "hooks.validation_reward",
                "OptimizationStepper": "hooks.optimization_stepper",
                "Recorder": "hooks.validation_reward",
                "ReplayBufferTrainer": "hooks.replay_buffer",
                "RewardNormalizer": "hooks.reward_normalizer",
                "SelectKeys": "hooks.select_keys",
                "UTDRHook": "hooks.utd_ratio",
                "UpdateWeights": "hooks.update_weights",
                "ValueEstimatorHook": "hooks.value_estimator",
                "mask_batch": "hooks.mask_batch",
            },
            "rlcore.algorithms": _lent(
                {
                    "algorithms.off_policy": "CQLTrainer DDPGTrainer DQNTrainer IQLTrainer SACTrainer TD3Trainer",
                    "algorithms.offline_to_online": "OfflineToOnlineTrainer",
                    "algorithms.on_policy": "A2CTrainer OnPolicyTrainer PPOTrainer ReinforceTrainer",
                    "algorithms.steppers": "TD3OptimizationStepper",
                }
            ),
            "rlcore.helpers": _lent(
                {
                    "helpers.actors": "make_dqn_actor",
                    "helpers.collectors": "make_collector_offpolicy make_collector_onpolicy sync_async_collector "
                    "sync_sync_collector",
                    "helpers.dqn": "make_dqn_loss make_target_updater",
                    "helpers.dreamer": "make_dreamer",
                    "helpers.envs": "parallel_env_constructor transformed_env_constructor",
                    "helpers.frames": "correct_for_frame_skip",
                    "helpers.logging_settings": "LoggerConfig",
                    "helpers.replay": "make_replay_buffer",
                    "helpers.statistics": "get_stats_random_rollout",
                    "helpers.trainers": "make_trainer",
                }
            ),
            "rlcore.loggers": _lent({"helpers.loggers": "generate_exp_name get_logger"}),
        },
        of_core=True,
        adapts=("torchrl",),
    ),
    "torchsnapshot": Published({"checkpointer": ("torchsnapshot",)}),
    "trackio": Published({"logger": ("trackio",)}, {"rlcore.loggers": {"TrackioLogger": "logger"}}),
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
    "vmas": Published({"env": ("vmas",)}),
    "vtrace": Published({"estimator": ("vtrace",), "loss": ("appo", "impala")}),
    "wandb": Published({"logger": ("wandb",)}, {"rlcore.loggers": {"WandbLogger": "logger"}}),
}
