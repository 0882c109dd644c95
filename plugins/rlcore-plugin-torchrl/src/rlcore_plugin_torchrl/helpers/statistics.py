"""Location and scale of observations, from random actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor

from rlcore.errors import ConfigError, EnvError
from rlcore.run import published
from rlcore.types import Context
from rlcore_plugin_torchrl.helpers import torchrl_parts
from rlcore_plugin_torchrl.helpers.settings import setting

if TYPE_CHECKING:
    from rlcore.types import Array, Env

OBSERVATION: Final = "observation"
PIXELS: Final = "pixels"


def get_stats_random_rollout(cfg: object, proof_environment: Any = None, key: Any = None) -> dict[str, Tensor]:
    """Return mean and standard deviation of the observations that random actions lead to.

    Args:
        cfg: settings with `init_env_steps`, the frames to look at, over all envs. `seed` (0) is that of actions and
            env. Without `proof_environment` also `env_name`, a Gymnasium id, and `frame_skip` (1). With
            `env_library` "gym" or "dm_control" that env is one of TorchRL.
        proof_environment: a vector env of rlcore, or an env of TorchRL; it is stepped and left open. Default: one that
            is made and closed here.
        key: "observation" for a mean per feature, "pixels" for one of all; default: pixels where observations are
            bytes of more than one dimension. Of an env of TorchRL: an entry; default: the only one of
            floating-point numbers or pixels.

    Returns:
        `loc` and `scale`, of the shape of an observation, or `[]` for pixels; float64 where float32 would round
        observations, else float32. A feature that does not change has `loc` 0 and `scale` 1.

    Raises:
        ConfigError: `init_env_steps` is missing or below 2, or another key.
        EnvError: an observation is not finite.
        PluginError: an env is to be made, and rlcore-plugin-gymnasium is not installed.
    """
    frames = setting(cfg, "init_env_steps")
    if frames < 2:
        raise ConfigError(f"init_env_steps = {frames} must be at least 2, for there to be a standard deviation")
    made_here = proof_environment is None
    if torchrl_parts.is_env(proof_environment) or (made_here and torchrl_parts.names_library(cfg)):
        return torchrl_parts.statistics(cfg, proof_environment, key)
    if key not in (None, OBSERVATION, PIXELS):
        raise ConfigError(f"key = {key!r} must be {OBSERVATION!r}, {PIXELS!r} or None: envs give one array")
    env = proof_environment or _made(cfg)
    try:
        seen = _random_observations(env, frames, setting(cfg, "seed", 0))
    finally:
        if made_here:
            env.close()
    if not np.isfinite(seen).all():
        raise EnvError(f"env {env.spec.id!r}: an observation of the random frames is not finite")
    space = env.spec.observation_space
    pixels = key == PIXELS if key else space.dtype == np.uint8 and len(space.shape or ()) > 1
    axis = None if pixels else 0
    loc, scale = np.asarray(seen.mean(axis)), np.asarray(seen.std(axis, ddof=1))
    still = scale == 0
    dtype = np.result_type(np.float32, space.dtype)
    return {
        "loc": torch.as_tensor(np.where(still, 0.0, loc).astype(dtype)),
        "scale": torch.as_tensor(np.where(still, 1.0, scale).astype(dtype)),
    }


def _random_observations(env: Env, frames: int, seed: int) -> Array:
    """Return as many observations, float64 `[frame, *shape]`, each followed by a random action."""
    space, num_envs = env.spec.action_space, env.spec.num_envs
    space.seed(seed % 2**31)
    observation = env.reset(seed=seed % 2**31)
    seen = []
    for _ in range(-(-frames // num_envs)):
        seen.append(np.array(observation, dtype=np.float64))
        observation = env.step(np.stack([np.asarray(space.sample()) for _ in range(num_envs)])).observation
    return np.concatenate(seen)[:frames]


def _made(cfg: object) -> Env:
    component = published("env", "gymnasium")
    config = component.schema()(id=setting(cfg, "env_name"), frame_skip=setting(cfg, "frame_skip", 1))
    return component.target()(config, Context.alone("statistics"))  # type: ignore[no-any-return]
