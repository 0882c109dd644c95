"""rlpyt's agents: the section [model] that each stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rlcore.errors import ConfigError
from rlcore_plugin_runners.algos import TD3, Algorithm, CategoricalDQN

_NATURE = "rlcore_plugin_cnn.bodies:NatureCNN"


class Agent:
    """What all of them have.

    Args:
        ModelCls: None; networks of one's own are encoders of the model.
        model_kwargs: `hidden_sizes`, and further keys of the section [model] as they are.
        initial_model_state_dict: None; weights come with a run that goes on.
    """

    family: ClassVar[str] = ""
    hidden: ClassVar[tuple[int, ...]] = (64, 64)

    def __init__(
        self,
        ModelCls: None = None,  # noqa: N803, as in rlpyt
        model_kwargs: Mapping[str, Any] | None = None,
        initial_model_state_dict: None = None,
    ) -> None:
        if ModelCls is not None:
            raise ConfigError(
                "ModelCls: networks of your own are encoders, model_kwargs = dict(encoder='module:Name'); see the "
                'how-to "Bring your own network"'
            )
        if initial_model_state_dict is not None:
            raise ConfigError("initial_model_state_dict: a run goes on by train(resume=True), with all of its state")
        keys = dict(model_kwargs or {})
        self._hidden = list(keys.pop("hidden_sizes", self.hidden))
        self._keys = keys

    def model(self, algo: Algorithm, n_itr: int) -> dict[str, Any]:
        """Return the section [model].

        Args:
            algo: trains it.
            n_itr: iterations of the run.

        Raises:
            ConfigError: the algorithm trains other agents.
        """
        if algo.family != self.family:
            raise ConfigError(
                f"{type(algo).__name__} trains agents of the family {algo.family!r}, and {type(self).__name__} is of "
                f"the family {self.family!r}"
            )
        return {**self._section(algo, n_itr), **self._keys}

    def _section(self, algo: Algorithm, n_itr: int) -> dict[str, Any]:
        raise NotImplementedError


class FfAgent(Agent):
    """A policy and its values, two MLPs; categorical or normal, as the actions ask for."""

    family = "policy gradient"

    def _section(self, algo: Algorithm, n_itr: int) -> dict[str, Any]:
        return {"use": "mlp:mlp", "hidden": self._hidden}


class MujocoFfAgent(FfAgent):
    """The same, with standard deviations that do not depend on the observation."""

    def _section(self, algo: Algorithm, n_itr: int) -> dict[str, Any]:
        return {**super()._section(algo, n_itr), "log_std": 0.0}


class AtariFfAgent(FfAgent):
    """A policy and its values behind one convolutional network."""

    hidden: ClassVar[tuple[int, ...]] = ()

    def _section(self, algo: Algorithm, n_itr: int) -> dict[str, Any]:
        return {"use": "cnn:nature-cnn", "hidden": self._hidden}


class DqnAgent(Agent):
    """Action values, and random actions whose share falls to `eps_final` until iteration `eps_itr_max`."""

    family = "Q-learning"
    hidden: ClassVar[tuple[int, ...]] = (120, 84)

    def __init__(self, *, eps_init: float = 1.0, eps_final: float = 0.01, eps_itr_max: int = 1000, **keys: Any) -> None:
        super().__init__(**keys)
        self._eps, self._eps_itr_max = (eps_init, eps_final), eps_itr_max

    def _section(self, algo: Algorithm, n_itr: int) -> dict[str, Any]:
        start, end = self._eps
        fraction = min(1.0, self._eps_itr_max / n_itr)
        falls = {"epsilon_start": start, "epsilon_end": end, "epsilon_fraction": fraction}
        return {"use": "dqn:q-network", "hidden": self._hidden, **falls}


class AtariDqnAgent(DqnAgent):
    """The same behind a convolutional network."""

    hidden: ClassVar[tuple[int, ...]] = ()

    def _section(self, algo: Algorithm, n_itr: int) -> dict[str, Any]:
        return {**super()._section(algo, n_itr), "encoder": _NATURE}


class CatDqnAgent(DqnAgent):
    """Distributions of action values over `n_atoms` numbers."""

    def __init__(self, n_atoms: int = 51, **keys: Any) -> None:
        super().__init__(**keys)
        self._atoms = n_atoms

    def _section(self, algo: Algorithm, n_itr: int) -> dict[str, Any]:
        if not isinstance(algo, CategoricalDQN):
            raise ConfigError(f"{type(self).__name__} has distributions of values: train it with CategoricalDQN")
        limits = {"v_min": algo.V_min, "v_max": algo.V_max}
        return {**super()._section(algo, n_itr), "atoms": self._atoms, **limits}


class AtariCatDqnAgent(CatDqnAgent, AtariDqnAgent):
    """The same behind a convolutional network."""


class SacAgent(Agent):
    """A squashed normal policy, two critics, and uniform actions until learning begins."""

    family = "soft actor-critic"
    hidden = (256, 256)

    def _section(self, algo: Algorithm, n_itr: int) -> dict[str, Any]:
        random_frames = int(getattr(algo, "min_steps_learn", 0))
        return {"use": "sac:actor-critic", "hidden": self._hidden, "random_frames": random_frames}


class DdpgAgent(SacAgent):
    """A deterministic policy and its critic."""

    family = "deterministic policy"
    hidden = (400, 300)

    def _section(self, algo: Algorithm, n_itr: int) -> dict[str, Any]:
        critics = 2 if isinstance(algo, TD3) else 1
        return {**super()._section(algo, n_itr), "actor": "deterministic", "critics": critics}


class Td3Agent(DdpgAgent):
    """A deterministic policy and two critics."""
