"""The model: networks of TorchRL, an actor that samples actions, and the critics that a loss asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import gymnasium
import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor, nn

from rlcore.envs import FLATTENED, Packed
from rlcore.errors import ConfigError, MissingPluginError, did_you_mean
from rlcore.types import Context
from rlcore_plugin_torchrl.parts.library import torchrl_module
from rlcore_plugin_torchrl.parts.policy import Actor, ActorPolicy, EpsilonGreedyPolicy
from rlcore_plugin_torchrl.parts.sections import called, checked_table
from rlcore_plugin_torchrl.parts.signatures import keywords_of

Networks = dict[str, Any] | list[dict[str, Any]]
# what a critic maps to what: its inputs, and its outputs for each action or quantile
Form = Literal["value", "state_action", "action_values", "quantiles", "atoms"]
PARTS: Final = ("actor", "value", "qvalue", "action_value")


class TorchRLModel(nn.Module):
    """Networks of TorchRL by name, put together as its losses take them.

    Attributes:
        actor: an actor of TorchRL; None for a model that acts by its action values.
        value: a critic of states of TorchRL; None for a model without.
        policy: samples from it.
        loss: the loss of TorchRL, whose weights are those that are trained; None before it is built.
    """

    class Config(BaseModel, extra="forbid"):
        """The networks; each a table with `part` and keyword arguments, or a list of them, one after the other."""

        actor: Networks | None = Field(None, description="from observations to the parameters of `distribution`")
        value: Networks | None = Field(None, description="from observations to their values")
        qvalue: Networks | None = Field(None, description="from observations and actions to their values")
        action_value: Networks | None = Field(None, description="from observations to the values of all actions")
        distribution: str = Field(
            "auto",
            description="of the actions, such as TanhNormal or Categorical; deterministic: none; auto: Categorical, "
            "TanhNormal where actions have bounds, else IndependentNormal",
        )
        distribution_kwargs: dict[str, Any] = Field(
            default_factory=dict, description="keyword arguments of the distribution besides bounds"
        )
        exploration_noise: float = Field(
            0.1, ge=0, description="of a deterministic actor: deviation of the noise, in halves of the range of actions"
        )
        epsilon: float = Field(0.05, ge=0, le=1, description="of action values: share of random actions at the end")
        epsilon_start: float = Field(1.0, ge=0, le=1, description="of action values: share of random actions at first")
        epsilon_fraction: float = Field(0.1, gt=0, le=1, description="part of the run in which it falls to epsilon")
        atoms: int | None = Field(None, ge=2, description="of a distributional loss: atoms of action_value")
        v_min: float = Field(-10.0, description="of a distributional loss: least value")
        v_max: float = Field(10.0, description="of a distributional loss: largest value")
        quantiles: int = Field(25, ge=1, description="of a loss over quantiles: quantiles of each value")

        @model_validator(mode="after")
        def _fits(self) -> Any:
            if self.actor is None and self.action_value is None:
                raise ValueError("a policy needs the key actor, or action_value for one that takes the best action")
            try:
                for name in PARTS:
                    for number, table in enumerate(tables_of(getattr(self, name))):
                        checked_table("network", table, _key(name, number), {"in_features": 1, "out_features": 1})
            except (ConfigError, MissingPluginError) as error:
                raise ValueError(str(error)) from error
            return self

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        space = context.env_spec.observation_space
        if isinstance(space, Packed):
            raise ConfigError(
                f"[model] torchrl takes observations that are one array, not {space}; the transform 'flatten' makes "
                "one of them",
                remedy=FLATTENED,
            )
        self._config = config
        self._spec = context.env_spec
        self._seed = context.seed()
        self.actor: Any = None
        self.action_value: Any = None
        self.value: Any = None
        self.qvalue: Any = None
        self.loss: Any = None
        if config.actor is not None:
            self.actor = Actor(self._seeded("actor", self._actor), self._spec.action_space)
        else:
            form: Form = "action_values" if config.atoms is None else "atoms"
            self.action_value = self.critic("action_value", form)
        if config.value is not None:
            self.value = self.critic("value", "value")
        self.policy: Any = (
            ActorPolicy(self.actor, self._spec.action_space, config.exploration_noise)
            if self.actor is not None
            else EpsilonGreedyPolicy(self, config, context.progress)
        )

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks that the config has."""
        return tuple(name for name in PARTS if getattr(self._config, name) is not None)

    def take_loss(self, loss: Any, weights: Mapping[str, nn.Module]) -> None:
        """Take the weights of a loss: those of its networks, its targets, and its temperature.

        Args:
            loss: of TorchRL.
            weights: of its networks, by the name of the part of this model.
        """
        self.loss = loss
        for name, module in weights.items():
            if name == "qvalue":  # of which the loss has several, with weights of their own
                self.qvalue = module

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take the weights back; without a loss only those of the policy, as an agent needs no others."""
        if self.loss is None:
            own = super().state_dict()
            state = {name: value for name, value in state.items() if name in own}
        return super().load_state_dict(state, strict, assign)

    def acting(self, data: Any) -> Tensor:
        """Return the values of all actions `[env, action]`, for the entries that a policy sees."""
        values: Tensor = self.action_value(data).get("action_value")
        if self._config.atoms is None:
            return values
        support = torch.linspace(self._config.v_min, self._config.v_max, self._config.atoms, device=values.device)
        return (values.exp() * support.unsqueeze(-1)).sum(-2)

    @property
    def action_spec(self) -> Any:
        """The space of the actions as a spec of TorchRL."""
        data, space = torchrl_module("torchrl.data"), self._spec.action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            return data.Categorical(int(space.n), shape=())
        assert isinstance(space, gymnasium.spaces.Box)
        return data.Bounded(torch.as_tensor(space.low), torch.as_tensor(space.high), space.shape, dtype=torch.float32)

    @property
    def num_actions(self) -> int:
        """How many actions there are.

        Raises:
            ConfigError: actions are not discrete.
        """
        if not isinstance(self._spec.action_space, gymnasium.spaces.Discrete):
            raise ConfigError(
                "[model]: values of all actions need discrete actions; use qvalue, and a loss that takes it"
            )
        return int(self._spec.action_space.n)

    def critic(self, name: str, form: Form) -> Any:
        """Return a new critic of TorchRL.

        Args:
            name: of the networks in the config.
            form: what it maps to what.

        Raises:
            ConfigError: the config has no such networks.
        """
        if getattr(self._config, name) is None:
            raise ConfigError(f"[model] {name}: missing, and the loss or the estimator needs it")
        return self._seeded(name, lambda: self._critic(name, form))

    def _critic(self, name: str, form: Form) -> Any:
        modules = torchrl_module("torchrl.modules")
        config = self._config
        if form == "value":
            return modules.ValueOperator(self._networks(name, 1), in_keys=["observation"])
        if form in ("state_action", "quantiles"):
            outputs = 1 if form == "state_action" else config.quantiles
            return modules.ValueOperator(
                self._networks(name, outputs, self._action_size()), in_keys=["observation", "action"]
            )
        if form == "atoms":
            assert config.atoms is not None
            atoms = nn.Sequential(
                self._networks(name, self.num_actions * config.atoms),
                nn.Unflatten(-1, (config.atoms, self.num_actions)),
            )
            support = torch.linspace(config.v_min, config.v_max, config.atoms)
            return modules.DistributionalQValueActor(
                nn.Sequential(atoms, nn.LogSoftmax(-2)),
                support=support,
                spec=self.action_spec,
                in_keys=["observation"],
                action_space="categorical",
            )
        network = self._networks(name, self.num_actions)
        if name == "action_value":
            return modules.QValueActor(network, in_keys=["observation"], spec=self.action_spec)
        return modules.ValueOperator(network, in_keys=["observation"], out_keys=["action_value"])

    def _actor(self) -> Any:
        modules, nn_modules = torchrl_module("torchrl.modules"), torchrl_module("tensordict.nn")
        space, kind = self._spec.action_space, self._distribution()
        if isinstance(space, gymnasium.spaces.Discrete):
            network = nn_modules.TensorDictModule(self._networks("actor", int(space.n)), ["observation"], ["logits"])
            return modules.ProbabilisticActor(
                network, in_keys=["logits"], spec=self.action_spec, distribution_class=kind, **self._sampling()
            )
        size = self._action_size()
        if kind is None:
            network = modules.Actor(self._networks("actor", size), in_keys=["observation"], out_keys=["param"])
            bounded = modules.TanhModule(in_keys=["param"], out_keys=["action"], spec=self.action_spec)
            return nn_modules.TensorDictSequential(network, bounded)
        extractor = nn.Sequential(self._networks("actor", 2 * size), nn_modules.NormalParamExtractor())
        network = nn_modules.TensorDictModule(extractor, ["observation"], ["loc", "scale"])
        return modules.ProbabilisticActor(
            network, in_keys=["loc", "scale"], spec=self.action_spec, distribution_class=kind, **self._sampling()
        )

    def _sampling(self) -> dict[str, Any]:
        keywords = dict(self._config.distribution_kwargs)
        space = self._spec.action_space
        taken = keywords_of(self._distribution()).parameters
        if isinstance(space, gymnasium.spaces.Box) and "low" in taken:
            keywords |= {"low": torch.as_tensor(space.low), "high": torch.as_tensor(space.high)}
        return {
            "return_log_prob": True,
            "log_prob_key": "sample_log_prob",
            "distribution_kwargs": keywords,
        }

    def _distribution(self) -> Any:
        """Return the class of the distribution; None for a deterministic actor.

        Raises:
            ConfigError: there is none of that name.
        """
        name, space = self._config.distribution, self._spec.action_space
        discrete = isinstance(space, gymnasium.spaces.Discrete)
        if not discrete and not isinstance(space, gymnasium.spaces.Box):
            raise ConfigError(f"[model]: the actor of TorchRL takes Discrete or Box actions, not {space}")
        if name == "deterministic":
            if discrete:
                raise ConfigError("[model] distribution = 'deterministic': actions are discrete; use action_value")
            return None
        if name == "auto":
            bounded = isinstance(space, gymnasium.spaces.Box) and space.is_bounded()
            name = "Categorical" if discrete else "TanhNormal" if bounded else "IndependentNormal"
        homes = (torchrl_module("torchrl.modules"), torchrl_module("torch.distributions"))
        for home in homes:
            if name in dir(home):
                return getattr(home, name)
        names = [other for home in homes for other in dir(home) if other[0].isupper()]
        raise ConfigError(f"[model] distribution = {name!r}: there is no such distribution{did_you_mean(name, names)}")

    def _action_size(self) -> int:
        space = self._spec.action_space
        return int(space.shape[0]) if isinstance(space, gymnasium.spaces.Box) and space.shape else 1

    def _networks(self, name: str, outputs: int, further_inputs: int = 0) -> nn.Module:
        """Return the networks of a part, one after the other, with their sizes filled in."""
        tables = tables_of(getattr(self._config, name))
        shape = self._spec.observation_space.shape or ()
        modules: list[nn.Module] = []
        for number, table in enumerate(tables):
            sizes: dict[str, Any] = {"out_features": outputs} if number == len(tables) - 1 else {}
            if number == 0 and len(shape) == 1:
                sizes["in_features"] = shape[0] + further_inputs
            part, arguments = checked_table(
                "network",
                table,
                _key(name, number),
                {**sizes, "in_features": sizes.get("in_features"), "out_features": sizes.get("out_features", outputs)},
            )
            modules.append(called(part, arguments, _key(name, number)))
        network = _One(modules)
        example = [torch.zeros(2, *shape)] + ([torch.zeros(2, further_inputs)] if further_inputs else [])
        try:
            with torch.no_grad():
                output = network(*example)
        except Exception as error:
            raise ConfigError(
                f"[model] {name}: these networks do not take observations {list(shape)}"
                f"{' and actions' if further_inputs else ''}: {error}"
            ) from error
        if output.shape != (2, outputs):
            raise ConfigError(
                f"[model] {name}: these networks give {list(output.shape[1:])} for an observation, and {outputs} "
                'numbers are needed; end them with { part = "MLP" }, which knows the number'
            )
        return network

    def _seeded(self, name: str, make: Callable[[], Any]) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed + PARTS.index(name))
            return make()


class _One(nn.Module):
    """Networks one after the other; a first one that takes several inputs gets them all.

    Args:
        modules: in their order.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(modules)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return what the last one returns."""
        first, *others = self.networks
        inputs = tuple(entry.float() if not entry.is_floating_point() else entry for entry in inputs)
        output: Tensor = first(*inputs)
        for module in others:
            output = module(output)
        return output


def tables_of(networks: Networks | None) -> list[dict[str, Any]]:
    """Return the tables of a key that has one, several or none."""
    return [] if networks is None else networks if isinstance(networks, list) else [networks]


def _key(name: str, number: int) -> str:
    return f"[model] {name}" + (f".{number}" if number else "")
