"""The builders for envs, actors and losses that are TorchRL's own: TorchRL's, with each setting that they read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from tensordict.nn import TensorDictModuleBase

from rlcore.errors import ConfigError
from rlcore.types import policy_of
from rlcore_plugin_torchrl.helpers.settings import as_dict, setting
from rlcore_plugin_torchrl.parts.library import torchrl_module

# the settings classes of TorchRL whose defaults its builders read, in torchrl.trainers.helpers
_SETTINGS: Final = {
    "envs": ("EnvConfig",),
    "collectors": ("OffPolicyCollectorConfig",),
    "models": ("DiscreteModelConfig",),
    "losses": ("LossConfig",),
}
# read by its builders, and in none of those classes
_FURTHER: Final = {"gSDE": False}
LIBRARIES: Final = ("gym", "dm_control")
FRAMES_KEY: Final = "frames_of_trajectory"


def is_env(env: object) -> bool:
    """Return whether an object is an env of TorchRL, or a class of one."""
    common: Any = sys.modules.get("torchrl.envs.common")  # who has such an env has imported it
    if common is None:
        return False
    return issubclass(env, common.EnvBase) if isinstance(env, type) else isinstance(env, common.EnvBase)


def is_actor(part: object) -> bool:
    """Return whether an object is an actor, or a loss, for TensorDicts, as those of TorchRL, and no model of rlcore."""
    own = isinstance(part, TensorDictModuleBase) or type(part).__module__.partition(".")[0] == "torchrl"
    return own and policy_of(part) is None


def names_library(cfg: object) -> bool:
    """Return whether settings ask for an env of TorchRL: by `env_library`, as TorchRL's settings always do."""
    return setting(cfg, "env_library", None) in LIBRARIES


def builders(module: str) -> Any:
    """Return a module of `torchrl.trainers.helpers`.

    Raises:
        MissingPluginError: TorchRL is not installed.
    """
    return torchrl_module(f"torchrl.trainers.helpers.{module}")


def complete(cfg: object) -> SimpleNamespace:
    """Return settings with TorchRL's default for each one that its builders read and `cfg` does not have."""
    known = dict(_FURTHER)
    for module, names in _SETTINGS.items():
        for name in names:
            known |= {field.name: _default(field) for field in fields(getattr(builders(module), name))}
    held = as_dict(cfg)
    known |= {name: setting(cfg, name, default) for name, default in known.items()}
    further = {name: value for name, value in held.items() if name[:1] != "_"} if isinstance(held, dict) else {}
    return SimpleNamespace(**{**further, **known})


def env_constructor(cfg: object, *arguments: Any) -> Callable[..., Any]:
    """Return a function that makes an env of TorchRL with its transforms, by TorchRL's function."""
    return builders("envs").transformed_env_constructor(complete(cfg), *arguments)  # type: ignore[no-any-return]


def statistics(cfg: object, env: Any, key: Any) -> dict[str, Any]:
    """Return location and scale of an entry of observations, by TorchRL's function.

    Args:
        cfg: as for `get_stats_random_rollout`.
        env: of TorchRL; None for one that is made and closed here.
        key: of the entry; None for the only one that holds numbers other than counts and flags.

    Raises:
        ConfigError: `key` is None, and several entries could be meant.
    """
    chosen = complete(cfg)
    own = env is None
    if own:
        env = builders("envs").transformed_env_constructor(chosen, stats={"loc": 0.0, "scale": 1.0})()
    try:
        return builders("envs").get_stats_random_rollout(  # type: ignore[no-any-return]
            chosen, env, _observed(env) if key is None else key
        )
    finally:
        if own:
            env.close()


def collector(
    mode: str, env_fns: Any, env_kwargs: Any, per_collector: int | None, collectors: int | None, **kwargs: Any
) -> Any:
    """Return a collector of TorchRL, by its function.

    A limit of the frames of a trajectory is kept by a count of its own where the envs count their steps already, as
    those of `transformed_env_constructor` do: TorchRL refuses that.

    Raises:
        ConfigError: the functions do not return envs of TorchRL.
    """
    function = getattr(builders("collectors"), f"sync_{mode}_collector")
    limit = kwargs.get("max_frames_per_traj")
    if not _counts_steps(env_fns, env_kwargs) or limit is None or limit <= 0:
        limit = None
    else:
        kwargs["max_frames_per_traj"] = 0
    several = isinstance(env_fns, Sequence)
    makers = [partial(_env, make, limit) for make in (env_fns if several else [env_fns])]
    keywords = list(env_kwargs) if isinstance(env_kwargs, Sequence) else env_kwargs
    return function(makers if several else makers[0], keywords, per_collector, collectors, **kwargs)


def collector_from_settings(mode: str, make_env: Any, actor: Any, cfg: object, keywords: Any, **further: Any) -> Any:
    """Return a collector of TorchRL with the settings that its builders read."""
    chosen = complete(cfg)
    devices = chosen.collector_device
    device = devices if isinstance(devices, str) or len(devices) > 1 else devices[0]
    built = collector(
        mode,
        make_env,
        {} if keywords is None else keywords,
        1,
        -(-chosen.num_workers // chosen.env_per_collector),
        policy=actor,
        max_frames_per_traj=chosen.max_frames_per_traj,
        frames_per_batch=chosen.frames_per_batch,
        total_frames=chosen.total_frames,
        device=device,
        storing_device=device,
        split_trajs=True,
        exploration_type=_exploration(chosen.exploration_type),
        **further,
    )
    built.set_seed(chosen.seed)
    return built


def off_policy_keywords(cfg: object) -> dict[str, Any]:
    """Return what TorchRL's builder of off-policy collectors adds: random frames, rewards of several steps."""
    chosen = complete(cfg)
    kept: dict[str, Any] = {"init_random_frames": chosen.init_random_frames}
    if chosen.multi_step:
        kept["postproc"] = torchrl_module("torchrl.data.postprocs").MultiStep(
            gamma=chosen.gamma, n_steps=chosen.n_steps_return
        )
    return kept


def _default(field: Any) -> Any:
    return field.default if field.default is not MISSING else field.default_factory()


def _exploration(name: Any) -> Any:
    """Return a member of TorchRL's enumeration, by its name in any case of letters or itself."""
    known = torchrl_module("torchrl.envs.utils").ExplorationType
    if isinstance(name, known):
        return name
    member = str(name).rpartition(".")[2].upper()
    if member not in known.__members__:
        names = ", ".join(sorted(member.lower() for member in known.__members__))
        raise ConfigError(f"exploration_type = {name!r} must be one of {names}")
    return known[member]


def _observed(env: Any) -> Any:
    """Return the key of the entry of observations that holds floating-point numbers or pixels."""
    leaves = env.observation_spec.items(include_nested=True, leaves_only=True)
    keys = [key for key, leaf in leaves if leaf.dtype.is_floating_point or key == "pixels"]
    if len(keys) != 1:
        raise ConfigError(f"key: the env has {len(keys)} observations, {keys}; say which one is meant")
    return keys[0]


def _counts_steps(env_fns: Any, env_kwargs: Any) -> bool:
    """Return whether the first env has a count of steps.

    Raises:
        ConfigError: it is not of TorchRL.
    """
    env = _made(_first(env_fns), _first(env_kwargs) or {})
    try:
        if not is_env(env):
            raise ConfigError(
                f"policy is an actor for TensorDicts, and the env is a {type(env).__name__}, not one of TorchRL; "
                "transformed_env_constructor makes one with env_library = 'gym'"
            )
        return "step_count" in env.observation_spec
    finally:
        if is_env(env) and env is not env_fns:
            env.close()


def _first(one_or_more: Any) -> Any:
    return one_or_more[0] if isinstance(one_or_more, Sequence) else one_or_more


def _made(make: Any, keywords: Mapping[str, Any]) -> Any:
    """Return an env: what a function or a class makes, or the env that was handed over in its place."""
    return make if is_env(make) and not isinstance(make, type) else make(**keywords)


def _env(make: Any, limit: int | None = None, **keywords: Any) -> Any:
    """Return an env, whose trajectories are cut after `limit` steps."""
    env = _made(make, keywords)
    if limit is None:
        return env
    envs = torchrl_module("torchrl.envs")
    counter = envs.StepCounter(max_steps=limit, step_count_key=FRAMES_KEY)
    return env.append_transform(counter) if isinstance(env, envs.TransformedEnv) else envs.TransformedEnv(env, counter)
