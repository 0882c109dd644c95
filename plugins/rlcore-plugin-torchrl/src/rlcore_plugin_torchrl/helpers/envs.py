"""Constructors of envs whose transforms are part of them, from one flat settings object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.envs import TransformedEnv
from rlcore.errors import ConfigError, NotSupportedError
from rlcore.run import published
from rlcore.types import Context, Env, Step, Transform
from rlcore_plugin_torchrl.helpers import torchrl_parts
from rlcore_plugin_torchrl.helpers.joined import JoinedEnv
from rlcore_plugin_torchrl.helpers.settings import setting
from rlcore_plugin_torchrl.helpers.statistics import get_stats_random_rollout

if TYPE_CHECKING:
    from rlcore.types import Array

# what a flat settings object may ask for, and where it is instead
_ELSEWHERE: Final = {
    "from_pixels": "pixels of an env are observations of an env that gives them",
    "noops": "an env that begins with steps that do nothing is a Gymnasium wrapper",
    "vecnorm": "statistics that learn are the run's: transform running-observation-norm, or Factory.transform",
    "norm_rewards": "rewards are normalised in the run: transform reward-norm, or Factory.transform",
}


class ScaledRewards(Env):
    """An env whose rewards are `(reward - loc) * scale`."""

    def __init__(self, env: Env, loc: float, scale: float) -> None:
        self._env = env
        self._loc, self._scale = loc, scale
        self.spec = env.spec

    def reset(self, seed: int | None = None) -> Array:
        """Reset the env."""
        return self._env.reset(seed=seed)

    def step(self, action: Array) -> Step:
        """Step the env."""
        step = self._env.step(action)
        return step._replace(reward=((step.reward - self._loc) * self._scale).astype(np.float32))

    def close(self) -> None:
        """Close the env."""
        self._env.close()


def transformed_env_constructor(
    cfg: object,
    video_tag: str = "",
    logger: Any = None,
    stats: Mapping[str, Any] | None = None,
    norm_obs_only: bool = False,
    use_env_creator: bool = False,
    custom_env_maker: Callable[..., Any] | None = None,
    custom_env: Any = None,
    return_transformed_envs: bool = True,
    action_dim_gsde: int | None = None,
    state_dim_gsde: int | None = None,
    batch_dims: int = 0,
    obs_norm_state_dict: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Return a function that makes an env with its transforms: normalised, stacked, with scaled rewards.

    Args:
        cfg: settings: `env_name`, a Gymnasium id, and as far as they are there `env_library` ("gymnasium" for a vector
            env of rlcore, the default; "gym" or "dm_control" for an env of TorchRL), `frame_skip` (1),
            `max_frames_per_traj` (1000; 0 for the limit of the id), `norm_stats` (True: normalise by statistics),
            `init_env_steps` (1000 random frames for them), `catframes` (0), `reward_scaling` (None), `reward_loc` (0).
        video_tag: must be empty: the hook `video` records evaluations.
        logger: not used, as there are no videos here.
        stats: `loc` and `scale` of observations; default: taken of random frames, once, here.
        norm_obs_only: rewards are never normalised here, so it changes nothing.
        use_env_creator: the function that is returned is such a creator already.
        custom_env_maker: makes the env, with the keyword arguments of the call.
        custom_env: the env itself.
        return_transformed_envs: whether the transforms are in it.
        action_dim_gsde: must be None, as there is no gSDE.
        state_dim_gsde: must be None.
        batch_dims: must be 0: envs are vectors already.
        obs_norm_state_dict: as `stats`.

    An env of TorchRL, by `env_library`, as a class or itself, gets the transforms of TorchRL's function, from all of
    its settings and arguments; what is said above of other values and places holds for envs of rlcore.

    Returns:
        A function of `num_envs` (1) and further keyword arguments of the env's constructor. The envs have no state that
        could be saved, so a resume begins new episodes.

    Raises:
        ConfigError: a setting that has another place; says which.
        PluginError: a plugin is not installed; says how to install it.
    """
    if _of_torchrl(cfg, custom_env_maker, custom_env):
        made = (stats, norm_obs_only, use_env_creator, custom_env_maker, custom_env, return_transformed_envs)
        further = (action_dim_gsde, state_dim_gsde, batch_dims, obs_norm_state_dict)
        return torchrl_parts.env_constructor(cfg, video_tag, logger, *made, *further)
    _refuse(cfg, video_tag, action_dim_gsde, state_dim_gsde, batch_dims)
    maker = _maker(cfg, custom_env, custom_env_maker)
    if not return_transformed_envs:
        return maker
    norm = _norm(cfg, stats or obs_norm_state_dict, maker, custom_env)
    reward = (setting(cfg, "reward_loc", 0.0), setting(cfg, "reward_scaling", None))
    return partial(_transformed, maker, norm, setting(cfg, "catframes", 0), reward)


def parallel_env_constructor(cfg: object, **kwargs: Any) -> Any:
    """Return a function that makes a vector of `env_per_collector` (8) envs, each with its transforms.

    With settings or a `custom_env_maker` for envs of TorchRL, return what TorchRL's function returns: with several envs
    the `ParallelEnv` itself, with its transforms.

    Args:
        cfg: settings, as for `transformed_env_constructor`; `batch_transform` must be left out or True, since
            transforms see all envs at once here.
        kwargs: further arguments of `transformed_env_constructor`.

    Raises:
        ConfigError: `batch_transform = False`, or see there.
    """
    own_env = {name: kwargs.get(name) for name in ("custom_env_maker", "custom_env")}
    if not setting(cfg, "batch_transform", True):
        raise NotSupportedError("batch_transform = False: transforms see all envs at once; leave it out")
    if _of_torchrl(cfg, **own_env):
        chosen = torchrl_parts.complete(cfg)
        chosen.batch_transform = True
        return torchrl_parts.builders("envs").parallel_env_constructor(chosen, **kwargs)
    count = setting(cfg, "env_per_collector", 8)
    if kwargs.get("custom_env") is not None:
        raise NotSupportedError("custom_env is one env; pass custom_env_maker, which makes as many as are needed")
    if kwargs.get("custom_env_maker") is None:
        return partial(transformed_env_constructor(cfg, **kwargs), num_envs=count)
    return partial(_joined, transformed_env_constructor(cfg, **kwargs), count)


def _maker(cfg: object, custom_env: Env | None, custom_env_maker: Callable[..., Env] | None) -> Callable[..., Env]:
    """Return a function that returns an env of a script, or the one of the settings; the latter can be pickled."""
    if custom_env is not None:
        return partial(_itself, custom_env)
    if custom_env_maker is not None:
        return custom_env_maker
    return partial(_gymnasium, setting(cfg, "env_name"), setting(cfg, "frame_skip", 1), _limit(cfg))


def _of_torchrl(cfg: object, custom_env_maker: Callable[..., Any] | None, custom_env: Any) -> bool:
    """Return whether the env is one of TorchRL: the env itself, its class, or by `env_library`."""
    if custom_env is not None:
        return torchrl_parts.is_env(custom_env)
    return torchrl_parts.is_env(custom_env_maker) or torchrl_parts.names_library(cfg)


def _refuse(cfg: object, video_tag: str, *of_gsde_and_batch: int | None) -> None:
    for name, place in _ELSEWHERE.items():
        if setting(cfg, name, None):
            raise NotSupportedError(f"{name} = {setting(cfg, name)!r}: {place}")
    library = setting(cfg, "env_library", "gymnasium")
    if library != "gymnasium":
        raise NotSupportedError(f"env_library = {library!r}: envs of other libraries come from custom_env_maker")
    if video_tag:
        raise NotSupportedError(
            f"video_tag = {video_tag!r}: the hook `video` of rlcore-plugin-video records evaluations"
        )
    if any(of_gsde_and_batch):
        raise NotSupportedError("action_dim_gsde, state_dim_gsde and batch_dims have no meaning here; leave them out")


def _limit(cfg: object) -> int | None:
    frames = setting(cfg, "max_frames_per_traj", 1000)
    return frames if frames and frames > 0 else None


def _norm(
    cfg: object, stats: Mapping[str, Any] | None, maker: Callable[..., Env], custom_env: Env | None
) -> dict[str, Array] | None:
    """Return location and scale of observations: those that were given, or of random frames; None for no norm."""
    if stats is None and setting(cfg, "norm_stats", True):
        stats = _statistics(cfg, maker, custom_env)
    if stats is None:
        return None
    return {name: np.asarray(stats[name], dtype=np.float64) for name in ("loc", "scale")}


def _statistics(cfg: object, maker: Callable[..., Env], custom_env: Env | None) -> Mapping[str, Any]:
    frames = max(2, setting(cfg, "init_env_steps", 1000))
    env = maker()
    try:
        _check_own(env)
        return get_stats_random_rollout(SimpleNamespace(init_env_steps=frames, seed=setting(cfg, "seed", 0)), env)
    finally:
        if custom_env is None:
            env.close()


def _check_own(env: object) -> None:
    if torchrl_parts.is_env(env):
        raise ConfigError("custom_env_maker returns an env of TorchRL: set env_library = 'gym', as its settings do")


def _itself(env: Env) -> Env:
    return env


def _gymnasium(name: str, frame_skip: int, max_episode_steps: int | None, num_envs: int = 1, **constructor: Any) -> Env:
    component = published("env", "gymnasium")
    keys = {"id": name, "frame_skip": frame_skip, "num_envs": num_envs, "kwargs": constructor}
    config = component.schema()(**keys, max_episode_steps=max_episode_steps)
    return component.target()(config, Context.alone("script").for_component("env", "env"))  # type: ignore[no-any-return]


def _transformed(
    maker: Callable[..., Env],
    stats: Mapping[str, Array] | None,
    stacked: int,
    reward: tuple[float, float | None],
    **keys: Any,
) -> Env:
    env = maker(**keys)
    _check_own(env)
    transforms: list[Transform] = []
    context = Context.alone("script").for_component("transform", "transform")
    if stats is not None:
        component = published("transform", "observation-norm")
        norm = component.target()(component.schema()(), context)
        norm.load_state_dict({"mean": stats["loc"], "scale": 1.0 / stats["scale"]})
        transforms.append(norm)
    if stacked:
        component = published("transform", "frame-stack")
        transforms.append(component.target()(component.schema()(frames=stacked), context))
    transformed: Env = TransformedEnv(env, transforms) if transforms else env
    loc, scale = reward
    return transformed if scale is None else ScaledRewards(transformed, loc, scale)


def _joined(maker: Callable[..., Env], count: int, **keys: Any) -> Env:
    return JoinedEnv([maker(**keys) for _ in range(count)])
