"""From rsl_rl's config dictionary to the sections of a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError
from rlcore_plugin_rsl_rl.train_cfg import TrainCfg, WandbWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

# frames of a run that ends when its script does
_LONG: Final = 2**62
# of torch's AdamW, which rsl_rl leaves as it is
_WEIGHT_DECAY: Final = {"adamw": 0.01}


def sections_of(cfg: TrainCfg, num_envs: int, groups: Sequence[str], device: str, threads: int) -> dict[str, Any]:
    """Return the sections.

    Args:
        cfg: of rsl_rl.
        num_envs: of the env.
        groups: of observations that the env has.
        device: of the run.
        threads: CPU threads of torch.

    Raises:
        ConfigError: a batch cannot be divided, or there is no such group.
    """
    algorithm = cfg.algorithm
    frames = cfg.num_steps_per_env * num_envs
    if frames % algorithm.num_mini_batches:
        raise ConfigError(
            f"train_cfg: {frames} steps of a batch (num_steps_per_env times the envs) are no whole number in each of "
            f"{algorithm.num_mini_batches} minibatches; change algorithm.num_mini_batches"
        )
    seen = _seen(cfg, groups)
    kept = list(dict.fromkeys([*seen["actor"], *seen["critic"]]))
    of_model = {f"{part}_observations": names for part, names in seen.items()} if len(kept) > 1 else {}
    return {
        "run": {
            "name": cfg.run_name or "rsl-rl",
            "seed": cfg.seed,
            "total_frames": _LONG,
            "device": device,
            "threads": threads,
        },
        "env": {
            "use": "rsl-rl:rsl-rl",
            "make": "rlcore_plugin_rsl_rl.handed_over:env",
            "num_envs": num_envs,
            "groups": kept,
        },
        "model": {"use": "rsl-rl:rsl-rl", **of_model, **_networks(cfg)},
        **_objective(cfg),
        "optimizer": [_optimizer(cfg, part, losses) for part, losses in _LOSSES.items()],
        "collector": {"use": "device:device", "frames_per_batch": frames},
        "buffer": {
            "epochs": algorithm.num_learning_epochs,
            "minibatch_size": frames // algorithm.num_mini_batches,
        },
        "learner": {"max_grad_norm": algorithm.max_grad_norm, "compile": cfg.torch_compile_mode is not None},
        "hook": [{"use": "rsl-rl:env-log"}],
        "metrics": {"every": {"iterations": 1}},
        "checkpoint": {"every": {"iterations": cfg.save_interval}, "keep_best": False},
    }


def _objective(cfg: TrainCfg) -> dict[str, Any]:
    """Return what is minimised, and what it is estimated from."""
    algorithm = cfg.algorithm
    return {
        "loss": {
            "use": "rsl-rl:adaptive-ppo",
            "desired_kl": algorithm.desired_kl or 0.0 if algorithm.schedule == "adaptive" else 0.0,
            "clip_epsilon": algorithm.clip_param,
            "clip_value": algorithm.use_clipped_value_loss,
            "entropy_coef": algorithm.entropy_coef,
            "critic_coef": 2 * algorithm.value_loss_coef,  # rlcore halves the squared error
            "normalize_advantage": algorithm.normalize_advantage_per_mini_batch,
        },
        "estimator": {
            "use": "ppo:gae",
            "gamma": algorithm.gamma,
            "lmbda": algorithm.lam,
            "standardise": not algorithm.normalize_advantage_per_mini_batch,
        },
    }


# rsl_rl has one optimizer, and clips the gradients of actor and critic each by itself
_LOSSES: Final[Mapping[str, list[str]]] = {
    "actor": ["loss_objective", "loss_entropy"],
    "critic": ["loss_critic"],
}


def logging_sections(cfg: TrainCfg) -> dict[str, Any]:
    """Return the sections of a run that writes."""
    wandb = cfg.logger != "tensorboard"
    project = cfg.logger.project_name if isinstance(cfg.logger, WandbWriter) else cfg.wandb_project
    logger = (
        {"use": "wandb:wandb", **({"project": project} if project else {})}
        if wandb
        else {"use": "tensorboard:tensorboard"}
    )
    return {"logger": [logger]}


def _optimizer(cfg: TrainCfg, part: str, losses: list[str]) -> dict[str, Any]:
    name = cfg.algorithm.optimizer
    decay = {"weight_decay": _WEIGHT_DECAY[name]} if name in _WEIGHT_DECAY else {}
    lr = cfg.algorithm.learning_rate
    return {"use": f"core:{name}", "name": part, "parameters": [part], "losses": losses, "lr": lr, **decay}


def _seen(cfg: TrainCfg, groups: Sequence[str]) -> dict[str, list[str]]:
    """Return which groups actor and critic see, as rsl_rl finds them.

    Raises:
        ConfigError: there is no such group, or none that it finds.
    """
    seen = {}
    for part in ("actor", "critic"):
        default = next(([name] for name in (part, "policy") if name in groups), [])
        seen[part] = cfg.obs_groups.get(part, default)
        absent = [name for name in seen[part] if name not in groups]
        if absent or not seen[part]:
            named = f"there is no group {absent[0]!r}" if absent else "it names no group"
            raise ConfigError(f"train_cfg: obs_groups[{part!r}]: {named}; the env has {', '.join(groups)}")
    return seen


def _networks(cfg: TrainCfg) -> dict[str, Any]:
    """Return the keys of the model."""
    if cfg.policy is not None:
        policy = cfg.policy
        return {
            "actor_hidden": policy.actor_hidden_dims,
            "critic_hidden": policy.critic_hidden_dims,
            "actor_activation": policy.activation,
            "critic_activation": policy.activation,
            "actor_normalization": policy.actor_obs_normalization,
            "critic_normalization": policy.critic_obs_normalization,
            "init_std": policy.init_noise_std,
            "std_type": policy.noise_std_type,
        }
    assert cfg.actor is not None
    assert cfg.critic is not None
    keys: dict[str, Any] = {}
    for part, network in (("actor", cfg.actor), ("critic", cfg.critic)):
        keys[f"{part}_hidden"] = network.hidden_dims
        keys[f"{part}_activation"] = network.activation
        keys[f"{part}_normalization"] = network.obs_normalization
    return {**keys, **cfg.actor.distribution_cfg.model_dump(exclude={"class_name"})}
