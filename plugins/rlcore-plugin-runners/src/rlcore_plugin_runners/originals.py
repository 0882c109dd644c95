"""Which classes of rlpyt the classes here stand for, and what of them is not called; a file beside has their names."""

from __future__ import annotations

from typing import Final

from rlcore.types import Carries, Original, originals

_NETWORK: Final = "hand a network to ModelCls, or write a model"
_LOSS: Final = "override optimize_agent, or write a loss"
_SAMPLING: Final = "the collector does it; TrajInfoCls is told of each step, a hook at batch_process of each batch"
_STATE: Final = "the collector keeps the states of policies with a memory"
_WORKERS: Final = "rlcore starts the processes; override startup or train"
_SCHEDULE: Final = "a [[scheduler]] moves it; override sample_mode to do something each iteration"
_BUFFER: Final = "the arguments of the constructor say it, or write a buffer"
_KIND: Final = "the class says it; derive from another one"
_INSTEAD: Final = {
    **dict.fromkeys(
        ("make_env_to_model_kwargs", "pi", "q", "q_at_mu", "step", "target", "target_q", "value"), _NETWORK
    ),
    **dict.fromkeys(("models", "shared_mu_model", "target_q_at_mu"), _NETWORK),
    **dict.fromkeys(("mu_parameters", "pi_parameters", "q1_parameters", "q2_parameters", "q_parameters"), _NETWORK),
    **dict.fromkeys(
        ("append_opt_info_", "get_action_prior", "inv_value_scale", "loss", "mu_loss", "q_loss", "value_scale"), _LOSS
    ),
    **dict.fromkeys(("set_target_noise", "update_target"), "the loss does it; its arguments say how"),
    **dict.fromkeys(
        ("compute_input_priorities", "initialize_replay_buffer", "samples_to_buffer", "batch_size"), _BUFFER
    ),
    **dict.fromkeys(("collector_initialize", "obtain_samples", "reset", "reset_one"), _SAMPLING),
    **dict.fromkeys(("serve_actions", "serve_actions_evaluation"), _SAMPLING),
    **dict.fromkeys(("advance_rnn_state", "get_alt", "prev_rnn_state", "toggle_alt"), _STATE),
    **dict.fromkeys(
        ("make_vec_eps", "set_epsilon_itr_min_max", "set_sample_epsilon_greedy", "update_itr_hyperparams"), _SCHEDULE
    ),
    **dict.fromkeys(("_eval", "alternating", "bootstrap_value", "gpu", "recurrent"), _KIND),
    **dict.fromkeys(
        ("async_cpu", "data_parallel", "recv_shared_memory", "send_shared_memory", "sync_shared_memory"), _WORKERS
    ),
    **dict.fromkeys(("async_initialize", "build_ctrl", "build_par_objs", "launch_workers", "WorkerCls"), _WORKERS),
    **dict.fromkeys(("launch_memcpy", "launch_optimizer_workers", "launch_sampler", "optim_startup"), _WORKERS),
    **dict.fromkeys(("action_server_process", "shutdown_workers"), _WORKERS),
    "_log_infos": "override log_diagnostics",
    "give_V_min_max": "V_min and V_max of CategoricalDQN say it",
    "give_min_itr_learn": "min_steps_learn of the algorithm says it",
    "opt_info_fields": "all that the loss returns is stored; override store_diagnostics",
    "process_returns": "write an estimator",
    "update_counter": "it counts the optimisation steps of the run",
    "update_obs_rms": "the transform obs-norm normalises observations",
}


class CarriesRlpyt(Carries):
    """Base of what carries the names of a class of rlpyt, which is that of its own name."""

    original = Original("rlpyt", originals(__package__)["names"], _INSTEAD)
