"""Collectors over envs that functions make, in this process or in several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import torch

from rlcore.errors import ConfigError, NotSupportedError
from rlcore.run import PluginHost, find_component
from rlcore.types import Collector, Context, Env, policy_of
from rlcore_plugin_torchrl.helpers import torchrl_parts
from rlcore_plugin_torchrl.helpers.joined import JoinedEnv
from rlcore_plugin_torchrl.helpers.settings import setting

OF_WORKERS: Final = ("start_method", "timeout", "max_lag", "exact_rows")
MakeEnv = Callable[..., Env]
Keywords = Mapping[str, Any]


def sync_sync_collector(
    env_fns: MakeEnv | Sequence[MakeEnv],
    env_kwargs: Keywords | Sequence[Keywords] | None,
    num_env_per_collector: int | None = None,
    num_collectors: int | None = None,
    **kwargs: Any,
) -> Any:
    """Return a collector whose workers all act with the weights of the learner; with one of them, in this process.

    Args:
        env_fns: a function that returns a vector env of rlcore, or a list of them. With an actor of TorchRL they
            return envs of TorchRL, and the collector and its arguments are TorchRL's.
        env_kwargs: keyword arguments of the function, or a list of them.
        num_env_per_collector: functions called per worker, and
        num_collectors: workers; for a list one of the two follows from the other, for one function both are needed.
        kwargs: `policy` (a model of rlcore; required), `frames_per_batch` (200, of all workers), `total_frames`,
            `seed` (1), `start_method` and `timeout` of the workers, `max_lag` of those that do not wait.

    Raises:
        ConfigError: the numbers do not fit together, or an argument is not among these.
        PluginError: rlcore-plugin-parallel is needed and not installed.
    """
    if torchrl_parts.is_actor(kwargs.get("policy")):
        return torchrl_parts.collector("sync", env_fns, env_kwargs, num_env_per_collector, num_collectors, **kwargs)
    return _collector("sync", env_fns, env_kwargs, num_env_per_collector, num_collectors, **kwargs)


def sync_async_collector(
    env_fns: MakeEnv | Sequence[MakeEnv],
    env_kwargs: Keywords | Sequence[Keywords] | None,
    num_env_per_collector: int | None = None,
    num_collectors: int | None = None,
    **kwargs: Any,
) -> Any:
    """Return a collector whose workers go on while the learner learns; arguments are as for `sync_sync_collector`.

    A batch has the same steps of every env. It is never more than `max_lag` updates of the weights old.
    """
    if torchrl_parts.is_actor(kwargs.get("policy")):
        return torchrl_parts.collector("async", env_fns, env_kwargs, num_env_per_collector, num_collectors, **kwargs)
    return _collector("async", env_fns, env_kwargs, num_env_per_collector, num_collectors, **kwargs)


def make_collector_onpolicy(
    make_env: MakeEnv,
    actor_model_explore: Any,
    cfg: object,
    make_env_kwargs: Keywords | Sequence[Keywords] | None = None,
) -> Any:
    """Return a collector that waits for the learner, as losses on the policy's own experience need.

    Args:
        make_env: returns a vector env of rlcore; called once per worker. With an actor of TorchRL, an env of TorchRL.
        actor_model_explore: a model of rlcore; or an actor of TorchRL, for a collector of TorchRL as its builder
            makes it, of which also `collector_device`, `max_frames_per_traj` and `exploration_type` are settings.
        cfg: settings, of which all have defaults: `num_workers` (32) and `env_per_collector` (8), whose quotient,
            rounded up, is the number of worker processes; `frames_per_batch` (1000), `total_frames` (50,000,000),
            `seed` (42), `exploration_type` ("random", which alone is meant here), `start_method` ("forkserver").
        make_env_kwargs: of `make_env`, for all workers or for each.

    Raises:
        ConfigError: see `sync_sync_collector`.
    """
    if torchrl_parts.is_actor(actor_model_explore):
        return torchrl_parts.collector_from_settings("sync", make_env, actor_model_explore, cfg, make_env_kwargs)
    return _from_settings(sync_sync_collector, make_env, actor_model_explore, cfg, make_env_kwargs)


def make_collector_offpolicy(
    make_env: MakeEnv,
    actor_model_explore: Any,
    cfg: object,
    make_env_kwargs: Keywords | Sequence[Keywords] | None = None,
) -> Any:
    """Return a collector whose workers wait for the learner, or do not with `async_collection` (False).

    Arguments are as for `make_collector_onpolicy`; batches are for a replay buffer.

    Raises:
        ConfigError: see `sync_sync_collector`; also, with a model of rlcore, `multi_step`, since a replay buffer sums
            rewards over several steps, and `init_random_frames`, since its collectors act with the policy from the
            first frame on.
    """
    if torchrl_parts.is_actor(actor_model_explore):
        mode = "async" if setting(cfg, "async_collection", False) else "sync"
        further = torchrl_parts.off_policy_keywords(cfg)
        return torchrl_parts.collector_from_settings(
            mode, make_env, actor_model_explore, cfg, make_env_kwargs, **further
        )
    if setting(cfg, "multi_step", False):
        raise NotSupportedError(
            "multi_step = True: rewards of several steps are summed where they are replayed, not here"
        )
    random_frames = setting(cfg, "init_random_frames", 0)
    if random_frames:
        raise NotSupportedError(
            f"init_random_frames = {random_frames}: collectors act with the policy from the first frame"
        )
    collector = sync_async_collector if setting(cfg, "async_collection", False) else sync_sync_collector
    return _from_settings(collector, make_env, actor_model_explore, cfg, make_env_kwargs)


def _from_settings(
    collector: Callable[..., Collector],
    make_env: MakeEnv,
    model: Any,
    cfg: object,
    make_env_kwargs: Keywords | Sequence[Keywords] | None,
) -> Collector:
    kind = setting(cfg, "exploration_type", "random")
    if str(kind).rpartition(".")[2].lower() != "random":
        raise NotSupportedError(f"exploration_type = {kind!r}: collectors sample from the policy; set 'random'")
    return collector(
        make_env,
        make_env_kwargs,
        num_env_per_collector=1,
        num_collectors=-(-setting(cfg, "num_workers", 32) // setting(cfg, "env_per_collector", 8)),
        policy=model,
        frames_per_batch=setting(cfg, "frames_per_batch", 1000),
        total_frames=setting(cfg, "total_frames", 50_000_000),
        seed=setting(cfg, "seed", 42),
        start_method=setting(cfg, "start_method", "forkserver"),
        max_frames_per_traj=setting(cfg, "max_frames_per_traj", None),
    )


@dataclass(frozen=True)
class _Functions:
    """Makes a part of the envs.

    Attributes:
        calls: functions with their keyword arguments, in the order of the envs.
        per_call: envs that each returns.
    """

    calls: tuple[tuple[MakeEnv, Keywords], ...]
    per_call: int

    def __call__(self, purpose: str = "", first_env: int = 0, num_envs: int | None = None) -> JoinedEnv:
        """Return the envs from number `first_env` on."""
        begin = first_env // self.per_call
        end = len(self.calls) if num_envs is None else begin + num_envs // self.per_call
        return JoinedEnv([function(**keywords) for function, keywords in self.calls[begin:end]])


def _collector(
    mode: Literal["sync", "async"],
    env_fns: MakeEnv | Sequence[MakeEnv],
    env_kwargs: Keywords | Sequence[Keywords] | None,
    num_env_per_collector: int | None,
    num_collectors: int | None,
    policy: Any = None,
    frames_per_batch: int = 200,
    total_frames: int | None = None,
    seed: int = 1,
    max_frames_per_traj: int | None = None,
    **workers: Any,
) -> Collector:
    if policy_of(policy) is None:
        raise ConfigError(
            f"policy: a {type(policy).__name__} is no model of rlcore, which has an attribute `policy`, "
            "and no actor of TorchRL"
        )
    if max_frames_per_traj is not None and max_frames_per_traj > 0:
        raise ConfigError(f"max_frames_per_traj = {max_frames_per_traj}: the limit belongs to the env; set it there")
    functions, count = _divided(env_fns, num_env_per_collector, num_collectors)
    keywords = list(env_kwargs) if isinstance(env_kwargs, Sequence) else [env_kwargs or {}] * len(functions)
    if len(keywords) != len(functions):
        raise ConfigError(f"env_kwargs: {len(keywords)} entries for {len(functions)} envs")
    envs = [function(**own) for function, own in zip(functions, keywords, strict=True)]
    if any(torchrl_parts.is_env(env) for env in envs):
        raise ConfigError(f"policy: a {type(policy).__name__} of rlcore does not act in envs of TorchRL")
    env = JoinedEnv(envs)
    per_call = env.spec.num_envs // len(functions)
    context = _context(env, policy, seed, total_frames)
    context.built["make_env_for"] = _Functions(tuple(zip(functions, keywords, strict=True)), per_call)
    if mode == "sync" and count == 1:
        workers = {name: value for name, value in workers.items() if name not in OF_WORKERS}
        return _built("local", context, frames_per_batch=frames_per_batch, **workers)
    return _built(
        "parallel:workers", context, mode=mode, num_workers=count, frames_per_batch=frames_per_batch, **workers
    )


def _built(use: str, context: Context, **keys: Any) -> Collector:
    provided, config = find_component(PluginHost(), "collector", use, keys)
    return provided.build(config, context)  # type: ignore[no-any-return]


def _context(env: JoinedEnv, model: Any, seed: int, total_frames: int | None) -> Context:
    device = next(model.parameters()).device if isinstance(model, torch.nn.Module) else "cpu"
    context = Context.alone("script", seed, total_frames or 1, device).for_component("collector", "local")
    context.built.update(env=env, env_spec=env.spec, transforms=[], model=model)
    return context


def _divided(
    env_fns: MakeEnv | Sequence[MakeEnv], per_collector: int | None, collectors: int | None
) -> tuple[list[MakeEnv], int]:
    """Return the functions, one for each env, and the number of workers."""
    if not isinstance(env_fns, Sequence):
        if per_collector is None or collectors is None:
            raise ConfigError(
                "with one function for all envs, num_env_per_collector and num_collectors are both needed; found "
                f"{per_collector} and {collectors}"
            )
        return [env_fns] * (per_collector * collectors), collectors
    functions = list(env_fns)
    if per_collector is None and collectors is None:
        raise ConfigError("give num_env_per_collector or num_collectors")
    if collectors is None:
        collectors = -(-len(functions) // (per_collector or 1))
    elif per_collector is not None and per_collector * collectors < len(functions):
        raise ConfigError(
            f"num_env_per_collector * num_collectors = {per_collector * collectors} is less than the "
            f"{len(functions)} envs"
        )
    if len(functions) % collectors:
        raise ConfigError(f"{len(functions)} envs cannot be divided evenly among {collectors} collectors")
    return functions, collectors
