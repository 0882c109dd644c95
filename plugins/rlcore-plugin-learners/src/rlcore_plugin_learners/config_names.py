"""Names of RLlib's configs that nothing answers to here: older ones, and those of what samples envs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

RENAMED: Final = {
    "custom_resources_per_worker": "custom_resources_per_env_runner",
    "delay_between_worker_restarts_s": "delay_between_env_runner_restarts_s",
    "evaluation_num_workers": "evaluation_num_env_runners",
    "exploration": "env_runners",
    "get_marl_module_spec": "get_multi_rl_module_spec",
    "ignore_worker_failures": "ignore_env_runner_failures",
    "max_num_worker_restarts": "max_num_env_runner_restarts",
    "num_consecutive_worker_failures_tolerance": "num_consecutive_env_runner_failures_tolerance",
    "num_cpus_for_local_worker": "num_cpus_for_main_process",
    "num_cpus_per_learner_worker": "num_cpus_per_learner",
    "num_cpus_per_worker": "num_cpus_per_env_runner",
    "num_envs_per_worker": "num_envs_per_env_runner",
    "num_gpus_per_learner_worker": "num_gpus_per_learner",
    "num_gpus_per_worker": "num_gpus_per_env_runner",
    "num_learner_workers": "num_learners",
    "num_rollout_workers": "num_env_runners",
    "num_sgd_iter": "num_epochs",
    "model_config_dict": "model_config",
    "recreate_failed_env_runners": "restart_failed_env_runners",
    "recreate_failed_workers": "restart_failed_env_runners",
    "rollouts": "env_runners",
    "uses_new_env_runners": "enable_env_runner_and_connector_v2",
    "validate_workers_after_construction": "validate_env_runners_after_construction",
    "worker_health_probe_timeout_s": "env_runner_health_probe_timeout_s",
    "worker_restore_timeout_s": "env_runner_restore_timeout_s",
}
_CONNECTORS: Final = "batches that a script brings have their columns; compute them before update"
_SAMPLING: Final = "it is of envs, which rlcore.PPO and its like or a config for `rlcore train` sample"
# where a script that asks learns what is so here
DEFAULTS: Final = {"add_default_connectors_to_learner_pipeline": False}
REFUSED: Final = {
    **dict.fromkeys(("DEFAULT_AGENT_TO_MODULE_MAPPING_FN", "DEFAULT_POLICY_MAPPING_FN"), "ids stand in the batch"),
    **dict.fromkeys(("build_env_to_module_connector", "build_learner_connector"), _CONNECTORS),
    **dict.fromkeys(("build_module_to_env_connector", "learner_connector"), _CONNECTORS),
    **dict.fromkeys(("get_evaluation_config_object", "get_rollout_fragment_length"), _SAMPLING),
    **dict.fromkeys(("is_offline", "is_online"), "a learner trains on batches wherever they come from"),
    **dict.fromkeys(("validate_train_batch_size_vs_rollout_fragment_length",), _SAMPLING),
    "get_multi_agent_setup": "get_multi_rl_module_spec returns how modules are built",
    "get_torch_compile_worker_config": _SAMPLING,
    "local_gpu_idx": "CUDA_VISIBLE_DEVICES=N picks the GPU of a process",
    "model": "rl_module(model_config=...) says what networks are built",
    "optimizer": "override configure_optimizers_for_module, and call register_optimizer there",
    "torch_compile_learner_dynamo_backend": "updates are compiled by torch's inductor",
    "torch_compile_learner_dynamo_mode": "updates are compiled in one mode",
    "torch_compile_learner_what_to_compile": "a whole step is one graph, from the forward pass to the optimizer",
    "torch_ddp_kwargs": "gradients are averaged without torch's DDP",
}
# RLlib's settings of some algorithms that have one value alone here, and what to do instead
SCHEDULES: Final[Mapping[str, tuple[Any, str]]] = {
    "lr_schedule": (None, "lr takes points, [[0, first], [steps, last]]"),
    "entropy_coeff_schedule": (None, "entropy_coeff takes points, [[0, first], [steps, last]]"),
}
_ADAM: Final = "steps are Adam's; override configure_optimizers_for_module for others"
_BATCHES: Final = "a batch is trained on when it comes; a script that keeps batches hands them over again"
OF_IMPALA: Final[Mapping[str, tuple[Any, str]]] = {
    **SCHEDULES,
    "vtrace": (True, "targets are those of V-trace; PPOConfig has advantages that a script brings"),
    "opt_type": ("adam", _ADAM),
    "decay": (0.99, _ADAM),
    "momentum": (0.0, _ADAM),
    "epsilon": (0.1, _ADAM),
    "minibatch_buffer_size": (1, _BATCHES),
    "replay_proportion": (0.0, _BATCHES),
    "num_multi_gpu_tower_stacks": (1, "num_learners says how many GPUs train"),
}
_LAYERS: Final = "rl_module(model_config=...) says what networks are built, or rl_module_spec an RLModule of yours"
_NO_NOISE: Final = "the networks have no noise; an RLModule of yours may have"
OF_DQN: Final[Mapping[str, tuple[Any, str]]] = {
    "lr_schedule": SCHEDULES["lr_schedule"],
    "adam_epsilon": (1e-8, _ADAM),
    "noisy": (False, _NO_NOISE),
    "sigma0": (0.5, _NO_NOISE),
    "hiddens": ([256], _LAYERS),
    "before_learn_on_batch": (None, "change a batch before update"),
    "categorical_distribution_temperature": (1.0, "the module's forward_exploration says how actions are drawn"),
    "burn_in_len": (0, "modules here have no memory"),
}
_MODEL: Final[dict[str, Any]] = {"post_fcnet_hiddens": [], "post_fcnet_activation": None, "custom_model": None}
_OLD_MODEL: Final[dict[str, Any]] = {
    "fcnet_hiddens": [256, 256],
    "fcnet_activation": "relu",
    **_MODEL,
    "custom_model_config": {},
}
OF_SAC: Final[Mapping[str, tuple[Any, str]]] = {
    "lr": (None, "SAC has actor_lr, critic_lr and alpha_lr"),
    "q_model_config": (_OLD_MODEL, _LAYERS),
    "policy_model_config": (_OLD_MODEL, _LAYERS),
    "clip_actions": (False, "a script clips its actions itself"),
}
OF_BC: Final[Mapping[str, tuple[Any, str]]] = {
    "beta": (0.0, "actions are cloned without weights; a subclass of TorchLearner has its own loss"),
    "bc_logstd_coeff": (0.0, "a subclass of TorchLearner has its own loss"),
    "burnin_len": (0, "modules here have no memory"),
}
