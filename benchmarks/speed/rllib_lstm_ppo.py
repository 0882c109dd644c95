"""Speed of RLlib's PPO with an LSTM that actor and critic share: `Algorithm.train`, envs and learner in one process.

It needs a layer before the LSTM, which the others here go without.
"""

from __future__ import annotations

import logging

import ray
from common import Phases, clock, peer_parser, prepare, report, whole_batches
from lstm_ppo import SIZE, STRETCH, WORKLOADS, make_env
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env


def main() -> None:
    """Train and print the JSON line."""
    args = peer_parser(__doc__, tuple(WORKLOADS)).parse_args()
    workload = WORKLOADS[args.workload]
    prepare(args)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    register_env("positions", lambda settings: make_env())
    network = DefaultModelConfig(
        fcnet_hiddens=[SIZE],
        head_fcnet_hiddens=[],
        vf_share_layers=True,
        use_lstm=True,
        lstm_cell_size=SIZE,
        max_seq_len=STRETCH,
    )
    config = (
        PPOConfig()
        .environment("positions")
        .env_runners(
            num_env_runners=0,
            num_envs_per_env_runner=workload.envs,
            rollout_fragment_length=workload.steps,
            batch_mode="truncate_episodes",
        )
        .training(
            lr=workload.learning_rate,
            gamma=workload.gamma,
            lambda_=workload.gae_lambda,
            clip_param=workload.clip,
            vf_loss_coeff=workload.value_coef,
            entropy_coeff=workload.entropy_coef,
            use_kl_loss=False,
            grad_clip=workload.max_grad_norm,
            train_batch_size_per_learner=workload.batch,
            minibatch_size=workload.minibatch,
            num_epochs=workload.epochs,
        )
        .learners(num_learners=0)
        .rl_module(model_config=network)
        .debugging(seed=args.seed, log_level="ERROR")
    )
    algorithm = config.build_algo()
    phases, latest = Phases(workload.batch), 0.0
    for _ in range(whole_batches(workload, args.frames) // workload.batch):
        began = clock()
        result = algorithm.train()
        seconds = clock() - began
        collecting = float(result["timers"]["env_runner_sampling_timer"])
        phases.add(collecting, seconds - collecting)
        latest = float(result["env_runners"].get("episode_return_mean", latest))
    report("rllib", args, phases, [latest])
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
