"""One side of `learners.py`: builds a group of learners, and takes an update for each line on its standard input."""

import json
import sys
import time

import gymnasium
import numpy as np

EPOCHS = 4


def columns(rows):
    """Return a batch of PPO, as a policy near the one at hand would have collected it."""
    generator = np.random.default_rng(0)
    return {
        "obs": generator.normal(size=(rows, 4)).astype(np.float32),
        "actions": generator.integers(0, 2, rows),
        "action_logp": np.full(rows, np.log(0.5), np.float32),
        "action_dist_inputs": np.zeros((rows, 2), np.float32),
        "vf_preds": np.zeros(rows, np.float32),
        "advantages": generator.normal(size=rows).astype(np.float32),
        "value_targets": generator.normal(size=rows).astype(np.float32),
    }


def settings_of(config, learners):
    """Return the config with what both systems call alike."""
    return config.learners(num_learners=learners).training(
        lr=3e-4, clip_param=0.2, use_kl_loss=False, entropy_coeff=0.01, vf_loss_coeff=0.5, grad_clip=0.5
    )


def rlcore_group(learners, mode, hidden):
    """Return a group of rlcore, and what takes an update."""
    from rlcore import PPOConfig

    config = settings_of(PPOConfig(), learners).framework(torch_compile_learner=mode == "compile")
    group = config.rl_module(model_config={"hidden": hidden}).build_learner_group(env="CartPole-v1")

    def update(batch, minibatch):
        group.update(batch, num_epochs=EPOCHS, minibatch_size=minibatch, shuffle_batch_per_epoch=True)

    return update, group.shutdown


def rllib_group(learners, mode, hidden):
    """Return a group of RLlib, and what takes an update."""
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

    if learners:
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    config = settings_of(PPOConfig(), learners).environment("CartPole-v1")
    config = config.rl_module(
        model_config=DefaultModelConfig(fcnet_hiddens=hidden, fcnet_activation="tanh", vf_share_layers=False)
    )
    group = config.build_learner_group(env=gymnasium.make("CartPole-v1"))

    def update(batch, minibatch):
        whole = MultiAgentBatch({"default_policy": SampleBatch(batch)}, len(batch["obs"]))
        group.update(
            batch=whole,
            timesteps={"num_env_steps_sampled_lifetime": 0},
            num_epochs=EPOCHS,
            minibatch_size=minibatch,
            shuffle_batch_per_epoch=True,
        )

    return update, group.shutdown


def main():
    """Build, take one update, then one for each line."""
    system, learners, mode, net, minibatch, rows = sys.argv[1:]
    layers, width = map(int, net.split("x"))
    import torch

    torch.set_num_threads(1)
    build = {"rlcore": rlcore_group, "rllib": rllib_group}[system]
    update, end = build(int(learners), mode, [width] * layers)
    batch = columns(int(rows))

    def timed():
        began = time.perf_counter()
        update(batch, int(minibatch))
        seconds = time.perf_counter() - began
        print(json.dumps({"samples_per_s": EPOCHS * int(rows) / seconds}), flush=True)

    timed()
    for _ in sys.stdin:
        timed()
    end()


if __name__ == "__main__":
    main()
