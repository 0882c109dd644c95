"""rlpyt's agents: the section [model] that each stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from torch import nn

from rlcore.errors import ConfigError, NotSupportedError
from rlcore_plugin_runners.algos import DQN, TD3, Algorithm, CategoricalDQN
from rlcore_plugin_runners.originals import CarriesRlpyt
from rlcore_plugin_runners.references import plain, reference_to
from rlcore_plugin_runners.samples import EnvSpaces

_NATURE = "rlcore_plugin_cnn.bodies:NatureCNN"
# of an argument of rlpyt's models, the key of [model]
_KEYS: Final = {
    "hidden_sizes": "hidden",
    "lstm_size": "size",
    "kernel_sizes": "kernels",
    "fc_sizes": "features",
    "dueling": "duelling",
}
_OF_BODY: Final = ("channels", "kernels", "strides", "features")


class Agent(CarriesRlpyt):
    """What all of them have.

    Args:
        ModelCls: a network of the script's own, as `own_model.py` says; default: those of rlcore.
        model_kwargs: its arguments; without it `hidden_sizes`, `lstm_size`, `channels`, `kernel_sizes`, `strides`,
            `fc_sizes`, `dueling`, and further keys of the section [model] as they are.
        initial_model_state_dict: the weights that a new run begins with: `agent_state_dict` of a snapshot.

    Attributes:
        recurrent: whether it has a memory.
        model_kwargs: as given.
        env_spaces: as `initialize` was told.
        trainer: rlcore's, once a runner has built it.
    """

    family: ClassVar[str] = ""
    hidden: ClassVar[tuple[int, ...]] = (64, 64)
    recurrent: ClassVar[bool] = False
    of_images: ClassVar[bool] = False

    def __init__(
        self,
        ModelCls: type[nn.Module] | None = None,  # noqa: N803, as in rlpyt
        model_kwargs: Mapping[str, Any] | None = None,
        initial_model_state_dict: Mapping[str, Any] | None = None,
    ) -> None:
        if callable(self):  # names with two underscores are Python's, which Carries leaves alone
            raise NotSupportedError(
                f"{type(self).__name__}.__call__ would never be called: rlpyt calls it, rlcore does not; hand a "
                "network to ModelCls, or write a model"
            )
        self.ModelCls, self.model_kwargs = ModelCls, dict(model_kwargs or {})
        self.initial_model_state_dict = initial_model_state_dict
        self.trainer: Any = None

    def initialize(
        self,
        env_spaces: EnvSpaces,
        share_memory: bool = False,
        global_B: int = 1,  # noqa: N803
        env_ranks: Any = None,
    ) -> None:
        """Take in the spaces, and the weights that the script gave; called once the run is built.

        Args:
            env_spaces: of one env.
            share_memory: False.
            global_B: 1.
            env_ranks: None.
        """
        self.env_spaces = env_spaces
        if self.initial_model_state_dict is not None:
            self.load_state_dict(self.initial_model_state_dict)

    def to_device(self, cuda_idx: int | None = None) -> None:
        """Do nothing: the model is on its device."""

    def sample_mode(self, itr: int) -> None:
        """Do nothing; called before an iteration samples."""

    def train_mode(self, itr: int) -> None:
        """Do nothing; called before an iteration optimises."""

    def eval_mode(self, itr: int) -> None:
        """Do nothing; called before an evaluation."""

    @property
    def model(self) -> Any:
        """The model that is trained; None before a runner has built it."""
        return None if self.trainer is None else self.trainer.model

    def parameters(self) -> Any:
        """Return the parameters of the model."""
        return self.model.parameters()

    def state_dict(self) -> dict[str, Any]:
        """Return the weights, as snapshots have them."""
        state: dict[str, Any] = self.model.state_dict()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the weights."""
        self.model.load_state_dict(state_dict)

    def section(self, algo: Algorithm, n_itr: int, itr_steps: int) -> dict[str, Any]:
        """Return the section [model].

        Args:
            algo: trains it.
            n_itr: iterations of the run.
            itr_steps: env steps of one iteration, over all envs.

        Raises:
            ConfigError: the algorithm trains other agents.
        """
        if algo.family != self.family:
            raise ConfigError(
                f"{type(algo).__name__} trains agents of the family {algo.family!r}, and {type(self).__name__} is of "
                f"the family {self.family!r}"
            )
        section = self._section(algo, n_itr * itr_steps, itr_steps)
        return {**section, **self._keys()} if self.ModelCls is None else self._own(section, self.ModelCls)

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        raise NotImplementedError

    def _keys(self) -> dict[str, Any]:
        """Return what `model_kwargs` says in the words of a config; of an encoder, in its own table."""
        keys = {_KEYS.get(name, name): value for name, value in self.model_kwargs.items()}
        body = {name: keys.pop(name) for name in _OF_BODY if name in keys} if self._has_encoder else {}
        return {**keys, "encoder_kwargs": body} if body else keys

    @property
    def _has_encoder(self) -> bool:
        return self.of_images

    def _own(self, section: dict[str, Any], model_class: type[nn.Module]) -> dict[str, Any]:
        raise ConfigError(
            f"ModelCls: {type(self).__name__} takes no network of your own; encoders before its layers are "
            "model_kwargs = dict(encoder='module:Name'), see the how-to \"Bring your own network\""
        )


class FfAgent(Agent):
    """A policy and its values, two MLPs; categorical or normal, as the actions ask for."""

    family = "policy gradient"

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        return {"use": "mlp:mlp", "hidden": list(self.hidden)}

    def _own(self, section: dict[str, Any], model_class: type[nn.Module]) -> dict[str, Any]:
        return own("runners:policy-network", model_class, self.model_kwargs)


class CategoricalPgAgent(FfAgent):
    """The same, for discrete actions."""


class GaussianPgAgent(FfAgent):
    """The same, for continuous actions."""


class MujocoFfAgent(GaussianPgAgent):
    """The same, with standard deviations that do not depend on the observation."""

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        return {**super()._section(algo, steps, itr_steps), "log_std": 0.0}


class AtariFfAgent(CategoricalPgAgent):
    """A policy and its values behind one convolutional network."""

    hidden: ClassVar[tuple[int, ...]] = ()

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        return {"use": "cnn:nature-cnn", "hidden": list(self.hidden)}


class DqnAgent(Agent):
    """Action values, and random actions whose share falls to `eps_final`; evaluations take the best action.

    Args:
        eps_init: share at the beginning.
        eps_final: share in the end.
        eps_itr_max: iteration in which it is reached; default: after `eps_steps` of the algorithm.
        eps_final_min: None; all envs have one share.
        eps_eval: 0 or 0.001, for which evaluations take the best action.
        keys: as of `Agent`.
    """

    family = "Q-learning"
    hidden: ClassVar[tuple[int, ...]] = (120, 84)

    def __init__(
        self,
        eps_init: float = 1.0,
        eps_final: float = 0.01,
        eps_final_min: float | None = None,
        eps_itr_min: int = 50,
        eps_itr_max: int | None = None,
        eps_eval: float = 0.001,
        **keys: Any,
    ) -> None:
        super().__init__(**keys)
        if eps_final_min not in (None, eps_final) or eps_eval not in (0, 0.001):
            raise ConfigError(
                f"eps_final_min = {eps_final_min}, eps_eval = {eps_eval}: all envs have one share of random actions, "
                "and evaluations have none; leave them out"
            )
        self.eps_init, self.eps_final = eps_init, eps_final
        self._eps_itr_max = eps_itr_max

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        return {"use": "dqn:q-network", "hidden": list(self.hidden), **self._falls(algo, steps, itr_steps)}

    def _falls(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        assert isinstance(algo, DQN)
        until = algo.eps_steps if self._eps_itr_max is None else self._eps_itr_max * itr_steps
        ends = {"epsilon_start": self.eps_init, "epsilon_end": self.eps_final}
        return {**ends, "epsilon_fraction": min(1.0, until / steps)}

    def _own(self, section: dict[str, Any], model_class: type[nn.Module]) -> dict[str, Any]:
        falls = {key: section[key] for key in section if key.startswith("epsilon")}
        return {**own("runners:value-network", model_class, self.model_kwargs), **falls}


class AtariDqnAgent(DqnAgent):
    """The same behind a convolutional network."""

    hidden: ClassVar[tuple[int, ...]] = ()
    of_images = True

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        return {**super()._section(algo, steps, itr_steps), "encoder": _NATURE}


class CatDqnAgent(DqnAgent):
    """Distributions of action values over `n_atoms` numbers."""

    def __init__(self, n_atoms: int = 51, **keys: Any) -> None:
        super().__init__(**keys)
        self.n_atoms = n_atoms

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        if not isinstance(algo, CategoricalDQN):
            raise ConfigError(f"{type(self).__name__} has distributions of values: train it with CategoricalDQN")
        limits = {"v_min": algo.V_min, "v_max": algo.V_max}
        return {**super()._section(algo, steps, itr_steps), "atoms": self.n_atoms, **limits}

    def _own(self, section: dict[str, Any], model_class: type[nn.Module]) -> dict[str, Any]:
        return Agent._own(self, section, model_class)


class AtariCatDqnAgent(CatDqnAgent, AtariDqnAgent):
    """The same behind a convolutional network."""


class SacAgent(Agent):
    """A squashed normal policy, two critics, and uniform actions until learning begins."""

    family = "soft actor-critic"
    hidden = (256, 256)

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        random_frames = int(getattr(algo, "min_steps_learn", 0))
        return {"use": "sac:actor-critic", "hidden": list(self.hidden), "random_frames": random_frames}


class DdpgAgent(SacAgent):
    """A deterministic policy and its critic."""

    family = "deterministic policy"
    hidden = (400, 300)

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        critics = 2 if isinstance(algo, TD3) else 1
        return {**super()._section(algo, steps, itr_steps), "actor": "deterministic", "critics": critics}


class Td3Agent(DdpgAgent):
    """A deterministic policy and two critics."""


def own(use: str, model_class: type[nn.Module], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the section of a network of a script's own."""
    network = reference_to("ModelCls", model_class)
    return {"use": use, "network": network, "network_kwargs": plain("model_kwargs", arguments)}
