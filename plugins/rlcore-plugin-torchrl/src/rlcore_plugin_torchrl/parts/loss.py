"""Losses of TorchRL by name, over the networks of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import Field, model_validator
from tensordict import TensorDict
from torch import Tensor, nn

from rlcore.errors import ConfigError, did_you_mean
from rlcore.types import Context, Key, Loss
from rlcore_plugin_torchrl.parts.library import classes, torchrl_module
from rlcore_plugin_torchrl.parts.model import TorchRLModel
from rlcore_plugin_torchrl.parts.sections import PartConfig, called
from rlcore_plugin_torchrl.parts.signatures import keywords_of

# by the argument of a loss: the networks of [model] that it takes, and what they map to what
_NETWORKS: Final = {
    "actor_network": ("actor", ""),
    "critic_network": ("value", "value"),
    "qvalue_network": ("qvalue", "state_action"),
    "value_network": ("value", "value"),
}
# where a loss means something else by the same argument
_OTHERWISE: Final = {
    "DQNLoss": {"value_network": ("action_value", "action_values")},
    "DistributionalDQNLoss": {"value_network": ("action_value", "atoms")},
    "DiscreteCQLLoss": {"value_network": ("action_value", "action_values")},
    "DDPGLoss": {"value_network": ("qvalue", "state_action")},
    "DiscreteSACLoss": {"qvalue_network": ("qvalue", "action_values")},
    "DiscreteIQLLoss": {"qvalue_network": ("qvalue", "action_values")},
    "TQCLoss": {"qvalue_network": ("qvalue", "quantiles")},
}
# whose actors see whole trajectories, or predict chunks of actions
_OTHER_ACTORS: Final = ("ACTLoss", "DTLoss", "OnlineDTLoss", "DiffusionBCLoss")
# what a loss reads where an [estimator] made its targets, and what any loss reads where something writes it
_WITH_ADVANTAGES: Final = ("observation", "action", "sample_log_prob", "advantage", "value_target")
_WHERE_WRITTEN: Final = ("state_value", "priority_weight", "logits", "loc", "scale")
_ALONE: Final = {"loss": "loss_value"}  # the only one of a loss goes by that name
_FROM_ENV: Final = ("action_spec", "action_space", "num_actions")
_OF_MODEL: Final = "is a network of [model]; name it there"


class TorchRLLoss(nn.Module, Loss):
    """A loss of TorchRL by the name of its class, with its target networks and its value estimator.

    It samples from torch's global generator, which checkpoints carry.

    Attributes:
        module: the loss of TorchRL.
    """

    class Config(PartConfig):
        """Which loss, and how its values and targets are made."""

        kind_of_part = "loss"
        provided = dict.fromkeys(_NETWORKS, _OF_MODEL)

        gamma: float = Field(0.99, ge=0, le=1, description="discount")
        value_estimator: str | None = Field(
            None, description="TD0, TD1, TDLambda, GAE or VTrace; default: that of the loss"
        )
        lmbda: float | None = Field(
            None, ge=0, le=1, description="weight of longer returns, of an estimator that has it"
        )
        target_tau: float = Field(
            0.005, gt=0, le=1, description="share of the weights that targets take over per update"
        )
        target_every: int | None = Field(
            None, ge=1, description="updates after which targets take all weights over; default: a share in each"
        )

        def given_by_rlcore(self) -> Sequence[str]:
            """Return the names of the arguments that the config need not say."""
            return (*_NETWORKS, *_FROM_ENV, "gamma")

        @model_validator(mode="after")
        def _can_be_built(self) -> Any:
            missing = set(keywords_of(self.part_class).required) - {*self.given_by_rlcore(), *self.keywords}
            if missing or not set(networks_of(self.part_class)):
                raise ValueError(
                    f"part: {self.part_class.__name__} takes networks that [model] does not make; losses that can be "
                    f"built are {', '.join(buildable())}"
                )
            return self

        @property
        def discounts(self) -> bool:
            """Whether `gamma` has an effect: not where an [estimator] makes the value targets."""
            return "critic_network" not in networks_of(self.part_class)

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        if context.run.resolved_config.get("learner", {}).get("compile"):
            raise ConfigError("[learner] compile = true: a loss of TorchRL keeps weights of its own; leave the key out")
        model: Any = context.model
        part = config.part_class
        if not isinstance(model, TorchRLModel):
            raise ConfigError(
                f"[loss] part = {config.part!r}: losses of TorchRL take its networks; set [model] use = 'torchrl'"
            )
        networks = self._networks(part, model)
        _check_actor(part, networks.get("actor_network"))
        arguments = {**networks, **_from_env(part, model, config), **config.arguments("[loss]")}
        self.module: Any = called(part, arguments, "[loss]")
        self._name_keys()
        self._make_estimator(config)
        self.requires = tuple(self._parts.values())
        if "critic_network" in networks:  # it would estimate advantages of a minibatch, whose steps are in no order
            self.reads = _WITH_ADVANTAGES
        model.take_loss(self.module, self._weights())
        if part.__name__ == "KLPENPPOLoss":  # it compares the distributions of the policy that acted and of now
            model.policy.write_parameters()
        self.target_updater = _Targets.of(self.module, config)

    def forward(self, minibatch: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return every `loss_*` of the loss of TorchRL, and its metrics, 0-d; `td_error` where it makes one."""
        entries = {key: minibatch[key] for key in self.reads or minibatch.keys()}
        entries |= {key: minibatch[key] for key in _WHERE_WRITTEN if key in minibatch}
        if not len(entries["action"]):  # the same names, with gradients of zero, from a row of zeros
            entries = {key: entry.new_zeros(1, *entry.shape[1:]) for key, entry in entries.items()}
            return {
                name: value * 0 if value.ndim == 0 else value[:0] for name, value in self._returned(entries).items()
            }
        return self._returned(entries)

    def _returned(self, entries: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        """Return what the loss of TorchRL makes of at least one row."""
        action = entries["action"]
        data = TensorDict({}, action.shape[:1], device=action.device)
        for key, entry in entries.items():
            data.set(key, entry)
        if "sample_log_prob" in entries:  # without the dimension at the end, as a distribution of TorchRL returns it
            data.set("sample_log_prob", entries["sample_log_prob"].squeeze(-1))
        returned = {}
        for name, value in self.module(data).items():
            if isinstance(value, Tensor) and value.numel() == 1:
                name, value = _ALONE.get(name, name), value.reshape(())
                returned[name] = value if name.startswith("loss_") else value.detach()
        error = data.get("td_error", None)
        return returned if error is None else {**returned, "td_error": error.detach().reshape(-1, 1)}

    def _networks(self, part: type, model: TorchRLModel) -> dict[str, Any]:
        """Return the networks of a loss; those that it can do without where the config has them."""
        required, built = keywords_of(part).required, model.parts()
        self._parts: dict[str, str] = {}
        self._forms = {argument: form for argument, (_, form) in networks_of(part).items()}
        networks: dict[str, Any] = {}
        for argument, (name, form) in networks_of(part).items():
            optional = argument not in required and name not in built
            if optional and argument == "value_network":
                continue
            if name not in built:
                raise ConfigError(f"[model] {name}: missing, and {part.__name__} of TorchRL needs it as {argument}")
            self._parts[argument] = name
            networks[argument] = _network(model, name, form, part)
        unused = [name for name in built if name not in self._parts.values()]
        if unused:
            raise ConfigError(
                f"[model] {', '.join(unused)}: {part.__name__} of TorchRL does not train it; leave it out"
            )
        return networks

    def _weights(self) -> dict[str, nn.Module]:
        return {name: getattr(self.module, f"{argument}_params") for argument, name in self._parts.items()}

    def _name_keys(self) -> None:
        keys = vars(self.module.tensor_keys)
        if "sample_log_prob" in keys:
            self.module.set_keys(sample_log_prob="sample_log_prob")
        if (
            "state_action_value" in keys
            and self._forms.get("qvalue_network") == "action_values"
            and "action_value" not in keys
        ):
            self.module.set_keys(state_action_value="action_value")

    def _make_estimator(self, config: Config) -> None:
        """Make what estimates values now: made in the first update, it would not be in the state before it."""
        estimators = torchrl_module("torchrl.objectives").ValueEstimators
        kind = getattr(self.module, "default_value_estimator", None)
        if config.value_estimator is not None:
            names = {kind.name.lower(): kind for kind in estimators}
            kind = names.get(config.value_estimator.lower())
            if kind is None:
                raise ConfigError(
                    f"[loss] value_estimator = {config.value_estimator!r}: TorchRL has no such estimator"
                    f"{did_you_mean(config.value_estimator, [kind.name for kind in estimators])}"
                )
        keywords = {"gamma": config.gamma} | ({} if config.lmbda is None else {"lmbda": config.lmbda})
        if kind is not None:
            try:
                self.module.make_value_estimator(kind, **keywords)
            except (TypeError, NotImplementedError, ValueError) as error:
                raise ConfigError(f"[loss] value_estimator: {config.part} of TorchRL refuses it: {error}") from error
        if "target_entropy" in dir(type(self.module)):
            _ = self.module.target_entropy


class _Targets:
    """Moves the target networks of a loss of TorchRL after each update.

    Args:
        updater: of TorchRL.
        every: updates between two moves of all weights; None for a share in each.
    """

    def __init__(self, updater: Any, every: int | None) -> None:
        self._updater = updater
        self._every = every
        self._updates = 0

    @classmethod
    def of(cls, module: Any, config: TorchRLLoss.Config) -> _Targets | None:
        """Return the mover of the targets of a loss; None for a loss without."""
        objectives = torchrl_module("torchrl.objectives")
        if not any(name.startswith("target_") and name.endswith("_params") for name in dict(module.named_children())):
            return None
        if config.target_every is not None:
            return cls(objectives.HardUpdate(module, value_network_update_interval=1), config.target_every)
        return cls(objectives.SoftUpdate(module, tau=config.target_tau), None)

    def step(self) -> None:
        """Move the targets, where it is time."""
        self._updates += 1
        if self._every is None or self._updates % self._every == 0:
            self._updater.step()

    def state_dict(self) -> dict[str, Any]:
        """Return the number of updates so far; the weights are the model's."""
        return {"updates": self._updates}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the number of updates."""
        self._updates = state["updates"]


def networks_of(part: type) -> dict[str, tuple[str, str]]:
    """Return the networks that a loss takes, by argument: the name of each in [model], and its form."""
    if part.__name__ in _OTHER_ACTORS:
        return {}
    taken = {**_NETWORKS, **_OTHERWISE.get(part.__name__, {})}
    return {argument: meant for argument, meant in taken.items() if argument in keywords_of(part).parameters}


def buildable() -> list[str]:
    """Return the names of the losses of TorchRL that take the networks that a model has."""
    of_rlcore = {*_NETWORKS, *_FROM_ENV, "gamma"}
    return [
        name
        for name, part in classes("loss").items()
        if set(keywords_of(part).required) <= of_rlcore and networks_of(part)
    ]


def _network(model: TorchRLModel, name: str, form: Any, part: type) -> Any:
    if name == "actor":
        return model.actor.module
    if name == "value":
        return model.value
    if name == "action_value":
        distributional = model.action_value is not None and "Distributional" in type(model.action_value).__name__
        if model.action_value is None or distributional != (form == "atoms"):
            keys = "action_value and atoms" if form == "atoms" else "action_value, no atoms"
            raise ConfigError(f"[model]: {part.__name__} of TorchRL needs {keys}, and no actor")
        return model.action_value
    return model.critic(name, form)


def _check_actor(part: type, actor: Any) -> None:
    """Refuse an actor of the wrong kind; the signature of the loss says which it takes."""
    if actor is None:
        return
    annotation = str(keywords_of(part).parameters["actor_network"].annotation)
    samples = callable(getattr(actor, "get_dist", None))
    if "Probabilistic" in annotation and not samples:
        raise ConfigError(
            f"[model] distribution = 'deterministic': {part.__name__} takes an actor with a distribution; "
            "leave the key out"
        )
    if part.__name__ in ("DDPGLoss", "TD3Loss", "TD3BCLoss") and samples:
        raise ConfigError(f"[model] distribution: {part.__name__} takes an actor without one: 'deterministic'")


def _from_env(part: type, model: TorchRLModel, config: TorchRLLoss.Config) -> dict[str, Any]:
    """Return the arguments that follow from the env and from keys of the section."""
    parameters = keywords_of(part).parameters
    arguments: dict[str, Any] = {}
    if "action_spec" in parameters and "action_spec" not in config.keywords:
        arguments["action_spec"] = model.action_spec
    if "action_space" in parameters and "action_space" not in config.keywords:
        arguments["action_space"] = "categorical"
    if "num_actions" in parameters and "num_actions" not in config.keywords:
        arguments["num_actions"] = model.num_actions
    if "normalize_advantage_exclude_dims" in parameters and "normalize_advantage_exclude_dims" not in config.keywords:
        arguments["normalize_advantage_exclude_dims"] = ()  # agents are rows here, not a dimension
    if part.__name__ == "DistributionalDQNLoss":
        arguments["gamma"] = config.gamma
    return arguments
