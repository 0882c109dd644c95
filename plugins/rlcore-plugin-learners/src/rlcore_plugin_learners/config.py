"""The settings of learners, set in groups by methods that return the config again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import gymnasium

from rlcore.errors import ConfigError, NotSupportedError, did_you_mean
from rlcore.types import Carries, Original
from rlcore_plugin_learners.columns import DEFAULT_MODULE_ID
from rlcore_plugin_learners.config_names import RENAMED
from rlcore_plugin_learners.env_spaces import spaces_of
from rlcore_plugin_learners.model_config import after
from rlcore_plugin_learners.module import RLModuleSpec
from rlcore_plugin_learners.multi import MultiRLModuleSpec
from rlcore_plugin_learners.originals import CONFIG
from rlcore_plugin_learners.other_settings import OtherSettings

if TYPE_CHECKING:
    from typing import Self

    from rlcore_plugin_learners.group import LearnerGroup
    from rlcore_plugin_learners.learner import Learner

Schedule = float | list[list[float]]
_CHOICES = {
    "grad_clip_by": ("global_norm", "norm", "value"),
    "launcher": ("auto", "processes", "ray"),
    "on_nonfinite": ("stop", "skip"),
}
# of the methods; what is left is for `training`
_OF_METHODS = frozenset(
    (
        "algo_class",
        "env",
        "env_config",
        "observation_space",
        "action_space",
        "num_learners",
        "num_cpus_per_learner",
        "num_gpus_per_learner",
        "custom_resources_per_learner",
        "launcher",
        "max_requests_in_flight_per_learner",
        "rl_module_spec",
        "model_config",
        "policies",
        "policies_to_train",
        "algorithm_config_overrides_per_module",
        "seed",
        "torch_compile_learner",
        "others",
    )
)


@dataclass
class AlgorithmConfig(Carries, OtherSettings):
    """Settings of a learner and of a group of them. Methods change it and return it.

    Attributes:
        algo_class: RLlib's configs name their algorithm by it; nobody reads it here.
        lr: learning rate, or `[[0, first], [steps, last], ...]`, linear in between, in sampled steps.
        grad_clip: limit of gradients; None for none.
        grad_clip_by: what it limits: the norm of all gradients of an optimizer, that of each tensor, or each value.
        num_epochs: of an update, where it is not said there.
        minibatch_size: likewise; None for the whole batch.
        shuffle_batch_per_epoch: likewise.
        on_nonfinite: a step that is not finite changes nothing; `stop` raises after the update, `skip` counts it.
        learner_class: a subclass of `Learner`.
        learner_config_dict: settings of a learner of yours.
        without_effect: RLlib's settings that may have one value alone here, and what to do instead.
    """

    without_effect: ClassVar[Mapping[str, tuple[Any, str]]] = {}
    original: ClassVar[Original] = CONFIG
    framework_str: ClassVar[str] = "torch"

    algo_class: Any = None
    env: Any = None
    env_config: dict[str, Any] = field(default_factory=dict)
    observation_space: gymnasium.Space[Any] | None = None
    action_space: gymnasium.Space[Any] | None = None
    num_learners: int = 0
    num_cpus_per_learner: int | float | Literal["auto"] = "auto"
    num_gpus_per_learner: int | float = 0
    custom_resources_per_learner: dict[str, float] | None = None
    launcher: Literal["auto", "processes", "ray"] = "auto"
    max_requests_in_flight_per_learner: int = 3
    rl_module_spec: RLModuleSpec | MultiRLModuleSpec | None = None
    model_config: Any = field(default_factory=dict)
    policies: dict[str, RLModuleSpec | None] = field(default_factory=dict)
    policies_to_train: Collection[str] | Callable[..., bool] | None = None
    algorithm_config_overrides_per_module: dict[str, dict[str, Any]] = field(default_factory=dict)
    seed: int = 0
    torch_compile_learner: bool = False
    lr: Schedule = 1e-3
    grad_clip: float | None = None
    grad_clip_by: Literal["global_norm", "norm", "value"] = "global_norm"
    num_epochs: int = 1
    minibatch_size: int | None = None
    shuffle_batch_per_epoch: bool = False
    on_nonfinite: Literal["stop", "skip"] = "stop"
    learner_class: type[Learner] | None = None
    learner_config_dict: dict[str, Any] = field(default_factory=dict)
    others: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for entry in fields(self):
            owner = next((kind for kind in type(self).__mro__ if entry.name in vars(kind)), AlgorithmConfig)
            is_default = getattr(self, entry.name) is entry.default
            if is_default and "__dataclass_fields__" not in vars(owner):  # a plain subclass says another default
                setattr(self, entry.name, vars(owner)[entry.name])

    def recorded(self) -> dict[str, Any]:
        """Return all settings; an env that is an object by its spaces."""
        settings = super().recorded()
        settings.pop("algo_class")  # nobody reads it
        if hasattr(self.env, "action_space"):
            observations, actions = self._spaces(None)
            settings |= {"env": None, "observation_space": observations, "action_space": actions}
        return settings

    @classmethod
    def from_record(cls, values: Mapping[str, Any]) -> Self:
        """Return a config of settings by name."""
        made = cls()
        for name, value in values.items():
            setattr(made, name, value)
        made.validate()
        return made

    def environment(
        self,
        env: Any = None,
        *,
        env_config: dict[str, Any] | None = None,
        observation_space: gymnasium.Space[Any] | None = None,
        action_space: gymnasium.Space[Any] | None = None,
        **others: Any,
    ) -> Self:
        """Set the env whose spaces the modules are built for: an env, its id and arguments, or its spaces.

        Others of RLlib's keywords are kept in `others`, here as in the next methods.
        """
        self._keep("environment", **others)
        return self._set(env=env, env_config=env_config, observation_space=observation_space, action_space=action_space)

    def learners(
        self,
        *,
        num_learners: int | None = None,
        num_cpus_per_learner: int | float | Literal["auto"] | None = None,
        num_gpus_per_learner: int | float | None = None,
        custom_resources_per_learner: dict[str, float] | None = None,
        launcher: Literal["auto", "processes", "ray"] | None = None,
        max_requests_in_flight_per_learner: int | None = None,
        learner_class: type[Learner] | None = None,
        learner_config_dict: dict[str, Any] | None = None,
        **others: Any,
    ) -> Self:
        """Set how many learners there are, and what each of them has.

        Args:
            num_learners: processes that learn; 0 for the calling one.
            num_cpus_per_learner: threads of torch in each, and cores that Ray sets aside; `auto` is one thread, and
                one core for a learner without a GPU.
            num_gpus_per_learner: 0, or 1 for CUDA; in a process of its own it takes Ray, where it may be a part of 1.
            custom_resources_per_learner: that each takes of a cluster of Ray, by their names there.
            launcher: `processes` of this host, or `ray` for actors of Ray, with rlcore-plugin-ray. `auto` is `ray`
                where the script is connected to Ray, by `ray.init()`.
            max_requests_in_flight_per_learner: asynchronous updates that may wait.
            learner_class: a subclass of `Learner`.
            learner_config_dict: settings of a learner of yours.
            others: of RLlib's keywords, kept.
        """
        self._keep("learners", **others)
        return self._set(
            num_learners=num_learners,
            num_cpus_per_learner=num_cpus_per_learner,
            num_gpus_per_learner=num_gpus_per_learner,
            custom_resources_per_learner=custom_resources_per_learner,
            launcher=launcher,
            max_requests_in_flight_per_learner=max_requests_in_flight_per_learner,
            learner_class=learner_class,
            learner_config_dict=learner_config_dict,
        )

    def training(self, **settings: Any) -> Self:
        """Set what is trained how: any attribute that no other method sets. What is of sampling goes to `others`.

        Raises:
            ConfigError: there is no such setting.
        """
        names = [entry.name for entry in fields(self) if entry.name not in _OF_METHODS]
        kept = self._keywords("training")
        for name in settings:
            if name not in (*names, *kept, *RENAMED):
                guess = did_you_mean(name, [*names, *kept])
                raise ConfigError(f"{type(self).__name__}.training has no {name!r}{guess}")
        self._keep("training", **{name: value for name, value in settings.items() if name not in names})
        for name in set(settings) & set(names):
            setattr(self, name, settings[name])
        self.validate()
        return self

    def rl_module(
        self,
        *,
        rl_module_spec: RLModuleSpec | MultiRLModuleSpec | None = None,
        model_config: Any = None,
        algorithm_config_overrides_per_module: dict[str, dict[str, Any]] | None = None,
        **others: Any,
    ) -> Self:
        """Set the modules, or the section of a model for those that are built by default.

        Args:
            rl_module_spec: how to build them.
            model_config: the section of a model.
            algorithm_config_overrides_per_module: settings of `training`, by id.
            others: of RLlib's keywords, kept.
        """
        self._keep("rl_module", **others)
        return self._set(
            rl_module_spec=rl_module_spec,
            model_config=model_config,
            algorithm_config_overrides_per_module=algorithm_config_overrides_per_module,
        )

    def multi_agent(
        self,
        *,
        policies: Collection[str] | Mapping[str, RLModuleSpec | None] | None = None,
        policies_to_train: Collection[str] | Callable[..., bool] | None = None,
        algorithm_config_overrides_per_module: dict[str, dict[str, Any]] | None = None,
        **others: Any,
    ) -> Self:
        """Set the ids of several modules, which of them are trained, and settings that hold for one alone.

        Args:
            policies: ids, or specs by id.
            policies_to_train: ids, or a function of an id and the batch; None for all.
            algorithm_config_overrides_per_module: settings of `training`, by id.
            others: of RLlib's keywords, such as `policy_mapping_fn`, kept.
        """
        self._keep("multi_agent", **others)
        if policies is not None and not isinstance(policies, Mapping):
            policies = dict.fromkeys(policies)
        return self._set(
            policies=None if policies is None else dict(policies),
            policies_to_train=policies_to_train,
            algorithm_config_overrides_per_module=algorithm_config_overrides_per_module,
        )

    def framework(
        self,
        framework: str | None = None,
        *,
        torch_compile_learner: bool | None = None,
        torch_skip_nan_gradients: bool | None = None,
        **others: Any,
    ) -> Self:
        """Set whether updates are compiled, and what becomes of a step that is not finite.

        Args:
            framework: `torch`.
            torch_compile_learner: whether updates are compiled.
            torch_skip_nan_gradients: whether `on_nonfinite` is `skip`, or else `stop`.
            others: of RLlib's keywords, kept.
        """
        if framework not in (None, "torch"):
            raise NotSupportedError(f"framework is {framework!r}; there is torch")
        self._keep("framework", **others)
        if torch_skip_nan_gradients is not None:
            self.on_nonfinite = "skip" if torch_skip_nan_gradients else "stop"
        return self._set(torch_compile_learner=torch_compile_learner)

    def debugging(self, *, seed: int | None = None, **others: Any) -> Self:
        """Set the seed that weights and the order of rows follow from."""
        self._keep("debugging", **others)
        return self._set(seed=seed)

    def get_config_for_module(self, module_id: str) -> Self:
        """Return the settings of one module."""
        overrides = self.algorithm_config_overrides_per_module.get(module_id)
        return self.copy(copy_frozen=False).training(**overrides) if overrides else self

    def get_multi_rl_module_spec(self, env: Any = None) -> MultiRLModuleSpec:
        """Return how the modules are built, with the spaces of the env in it."""
        observations, actions = self._spaces(env)
        own = self._model_config_auto_includes
        chosen = self.rl_module_spec or self.get_default_rl_module_spec()
        if isinstance(chosen, MultiRLModuleSpec):
            specs: dict[str, RLModuleSpec] = dict(chosen.specs())
        else:
            ids = self.policies or {DEFAULT_MODULE_ID: None}
            specs = {module_id: spec or chosen for module_id, spec in ids.items()}
        filled = {
            module_id: replace(
                spec,
                observation_space=spec.observation_space or observations,
                action_space=spec.action_space or actions,
                model_config=after(own, spec.model_config or self.model_config),
            )
            for module_id, spec in specs.items()
        }
        whole = chosen if isinstance(chosen, MultiRLModuleSpec) else MultiRLModuleSpec()
        return replace(whole, rl_module_specs=filled)

    def get_rl_module_spec(self, env: Any = None) -> RLModuleSpec:
        """Return how the first of the modules is built, with the spaces of the env in it."""
        return next(iter(self.get_multi_rl_module_spec(env).specs().values()))

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        """Settings of the algorithm that modules find in their `model_config`, unless it says others."""
        return {}

    @property
    def is_multi_agent(self) -> bool:
        """Whether there are modules of other ids than `default_policy`."""
        return bool(set(self.policies) - {DEFAULT_MODULE_ID})

    def get_default_rl_module_spec(self) -> RLModuleSpec | MultiRLModuleSpec:
        """Return the spec of modules where none is set."""
        return RLModuleSpec()

    def build_learner(self, *, env: Any = None) -> Learner:
        """Return a learner that is built.

        Args:
            env: whose spaces count; default: that of `environment`.
        """
        self.validate()
        learner = self.learner_type()(
            config=self.copy(copy_frozen=False), module_spec=self.get_multi_rl_module_spec(env)
        )
        learner.build()
        return learner

    def build_learner_group(self, *, env: Any = None) -> LearnerGroup:
        """Return a group of learners, ready for updates."""
        from rlcore_plugin_learners.group import LearnerGroup

        self.validate()
        return LearnerGroup(self.copy(copy_frozen=False), self.get_multi_rl_module_spec(env))

    def learner_type(self) -> type[Learner]:
        """Return the class of learners."""
        from rlcore_plugin_learners.torch_learner import TorchLearner

        return self.learner_class or self.get_default_learner_class() or TorchLearner

    def get_default_learner_class(self) -> type[Learner] | None:
        """Return the class of learners where none is set."""
        return None

    @property
    def threads_per_learner(self) -> int:
        """How many threads of torch a learner in another process has."""
        cpus = self.num_cpus_per_learner
        return 1 if cpus == "auto" else max(1, int(cpus))

    def _spaces(self, env: Any) -> tuple[gymnasium.Space[Any] | None, gymnasium.Space[Any] | None]:
        env = env or self.env
        if env is None:
            return self.observation_space, self.action_space
        return spaces_of(env, self.env_config)

    def _set(self, **settings: Any) -> Self:
        for name, value in settings.items():
            if value is not None:
                setattr(self, name, value)
        self.validate()
        return self

    def validate(self) -> None:
        """Refuse settings that fit nothing."""
        for name in ("num_learners", "num_epochs", "minibatch_size", "max_requests_in_flight_per_learner"):
            value, least = getattr(self, name), 0 if name == "num_learners" else 1
            if name == "minibatch_size" and value is None:
                continue
            if type(value) is not int or value < least:
                raise ConfigError(f"{name} is {value!r}; it takes whole numbers from {least} on")
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ConfigError(f"{name} is {value!r}; it takes {' or '.join(choices)}{did_you_mean(value, choices)}")
        gpus = self.num_gpus_per_learner
        if not (gpus in (0, 1) or (self.num_learners and isinstance(gpus, float) and 0 < gpus < 1)):
            raise ConfigError(f"num_gpus_per_learner is {gpus!r}; a learner has 0 or 1, or a part of 1 as an actor")
        if self.grad_clip is not None and not self.grad_clip > 0:
            raise ConfigError(f"grad_clip is {self.grad_clip!r}; it is above 0, or None for no limit")
        for name, (value, instead) in self.without_effect.items():
            if getattr(self, name) != value:
                raise NotSupportedError(f"{type(self).__name__}.{name} is {getattr(self, name)!r}: {instead}")
