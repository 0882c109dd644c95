"""Small runs of PPO in envs of tensors."""

from rlcore_plugin_testing.small_run import make_run


def run_of(collector, chain=(), env="Pendulum-v1", folder=None, resume=False, sections=None, **keys):
    """Return a run with the seeds of any collector, of episodes of 11 steps and batches of 16 steps of each env."""
    sections = {
        "run": {"total_frames": 512},
        "env": {"use": "torch-envs", "id": env, "num_envs": 4, "max_episode_steps": 11},
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "ppo"},
        "estimator": {"use": "gae"},
        "optimizer": [{"use": "adam"}],
        "buffer": {"use": "rollout", "minibatch_size": 16},
        "collector": {"use": collector, "name": "either", "frames_per_batch": 64, **keys},
        "transform": list(chain),
        **(sections or {}),
    }
    return make_run(sections=sections, folder=folder, resume=resume).trainer
