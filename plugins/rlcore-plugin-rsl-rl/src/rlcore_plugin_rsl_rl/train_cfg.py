"""The config dictionary of rsl_rl's runner: which keys it may have. What rlcore has no counterpart for is refused."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, PositiveInt, ValidationError

from rlcore.errors import ConfigError, did_you_mean
from rlcore_plugin_rsl_rl.networks import Activation

# what the scripts around rsl_rl's runner read, and the runner itself does not
OF_SCRIPTS: Final = (
    "class_name",
    "clip_actions",
    "device",
    "experiment_name",
    "load_checkpoint",
    "load_run",
    "max_iterations",
    "resume",
)


def _last_name(value: Any) -> Any:
    """Return the name of a class, of the class itself or of where it is, as `rsl_rl.algorithms:PPO`."""
    name = getattr(value, "__name__", value)
    return name.replace(":", ".").rpartition(".")[2] if isinstance(name, str) else name


def _only(allowed: Any, instead: str) -> AfterValidator:
    """Return what refuses every value but one."""

    def check(value: Any) -> Any:
        if value not in (allowed, None):
            raise ValueError(f"rlcore has no counterpart; {instead}")
        return value

    return AfterValidator(check)


def _named(*names: str) -> Any:
    return Annotated[Literal[names], BeforeValidator(_last_name)]


PPO: Any = _named("PPO")
MLP: Any = _named("MLPModel")
Gaussian: Any = _named("GaussianDistribution")
ActorCritic: Any = _named("ActorCritic")


class Distribution(BaseModel, extra="forbid"):
    """`actor.distribution_cfg`."""

    class_name: Gaussian = "GaussianDistribution"
    init_std: float = Field(1.0, gt=0)
    std_range: tuple[float, float] = (1e-6, 1e6)
    std_type: Literal["scalar", "log"] = "scalar"
    learn_std: bool = True


class Network(BaseModel, extra="forbid"):
    """`actor` or `critic`."""

    class_name: MLP = "MLPModel"
    hidden_dims: list[PositiveInt] = [256, 256, 256]
    activation: Activation = "elu"
    obs_normalization: bool = False


class ActorNetwork(Network):
    """`actor`."""

    distribution_cfg: Distribution


class CriticNetwork(Network):
    """`critic`."""

    distribution_cfg: Annotated[Any, _only(None, "a critic has no distribution")] = None


class Policy(BaseModel, extra="forbid"):
    """`policy`, as configs before rsl_rl 5 have it in the place of `actor` and `critic`."""

    class_name: ActorCritic = "ActorCritic"
    init_noise_std: float = Field(1.0, gt=0)
    noise_std_type: Literal["scalar", "log"] = "scalar"
    state_dependent_std: Annotated[bool, _only(False, "take the model mlp, whose deviations come from its network")] = (
        False
    )
    actor_obs_normalization: bool = False
    critic_obs_normalization: bool = False
    actor_hidden_dims: list[PositiveInt] = [256, 256, 256]
    critic_hidden_dims: list[PositiveInt] = [256, 256, 256]
    activation: Activation = "elu"


class Algorithm(BaseModel, extra="forbid"):
    """`algorithm`."""

    class_name: PPO = "PPO"
    num_learning_epochs: PositiveInt = 5
    num_mini_batches: PositiveInt = 4
    clip_param: float = Field(0.2, gt=0)
    gamma: float = Field(0.99, ge=0, le=1)
    lam: float = Field(0.95, ge=0, le=1)
    value_loss_coef: float = Field(1.0, ge=0)
    entropy_coef: float = Field(0.01, ge=0)
    learning_rate: float = Field(1e-3, gt=0)
    max_grad_norm: float = Field(1.0, gt=0)
    optimizer: Literal["adam", "adamw", "sgd", "rmsprop"] = "adam"
    use_clipped_value_loss: bool = True
    schedule: Literal["adaptive", "fixed"] = "adaptive"
    desired_kl: float | None = Field(0.01, gt=0)
    normalize_advantage_per_mini_batch: bool = False
    use_mixed_precision: Annotated[bool, _only(False, "leave it out")] = False
    rnd_cfg: Annotated[Any, _only(None, "leave it out")] = None
    symmetry_cfg: Annotated[Any, _only(None, "leave it out")] = None
    share_cnn_encoders: Annotated[Any, _only(False, "leave it out")] = None
    grad_reduce_bucket_mb: Annotated[float, _only(25, "gradients of several ranks are summed in one piece")] = 25


class WandbWriter(BaseModel, extra="forbid"):
    """`logger` as a dict."""

    class_name: _named("WandbLogWriter")  # type: ignore[valid-type]
    project_name: str


class TrainCfg(BaseModel, extra="forbid"):
    """The whole dictionary."""

    num_steps_per_env: PositiveInt
    save_interval: PositiveInt = 50
    seed: int = Field(1, ge=0)
    run_name: str | None = None
    obs_groups: dict[str, list[str]] = Field(default_factory=dict)
    algorithm: Algorithm = Field(default_factory=lambda: Algorithm.model_validate({}))
    actor: ActorNetwork | None = None
    critic: CriticNetwork | None = None
    policy: Policy | None = None
    logger: Literal["tensorboard", "wandb"] | WandbWriter = "tensorboard"
    wandb_project: str | None = None
    neptune_project: Any = None
    check_for_nan: Annotated[bool, _only(True, "each batch is checked; leave it out")] = True
    torch_compile_mode: Annotated[str | None, _only("default", "take 'default', or None")] = None
    empirical_normalization: Annotated[Any, _only(False, "set obs_normalization in actor and critic")] = None
    multi_gpu: Annotated[Any, _only(None, "for several GPUs write a config, and [ranks] in it")] = None


def read(train_cfg: dict[str, Any]) -> TrainCfg:
    """Return the dictionary, checked.

    Raises:
        ConfigError: a key is unknown, has no counterpart here, or another kind of value.
    """
    own = {name: value for name, value in train_cfg.items() if name not in OF_SCRIPTS}
    try:
        cfg = TrainCfg.model_validate(own)
    except ValidationError as error:
        raise ConfigError("\n  ".join(["train_cfg:", *(_problem(one, own) for one in error.errors())])) from None
    if (cfg.policy is None) == (cfg.actor is None or cfg.critic is None) or (cfg.policy and (cfg.actor or cfg.critic)):
        raise ConfigError("train_cfg: give both actor and critic, as rsl_rl 5 takes them, or policy alone")
    if unknown := [name for name in cfg.obs_groups if name not in ("actor", "critic")]:
        raise ConfigError(
            f"train_cfg: obs_groups[{unknown[0]!r}]{did_you_mean(unknown[0], ['actor', 'critic'])}: rlcore has an "
            "actor and a critic; leave it out"
        )
    return cfg


def _problem(error: Any, given: dict[str, Any]) -> str:
    *path, name = error["loc"]
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] != "extra_forbidden":
        message = error["msg"].removeprefix("Value error, ")
        return f"{place} = {error['input']!r}: {message}" if error["type"] != "missing" else f"{place}: missing"
    table: Any = TrainCfg
    for part in path:
        table = {"algorithm": Algorithm, "actor": ActorNetwork, "critic": CriticNetwork, "policy": Policy}.get(
            part, Distribution
        )
    return f"{place}: rlcore does not know this key{did_you_mean(str(name), table.model_fields)}; leave it out"
