"""rlpyt's agents with a memory: the section [model] that each stands for."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import nn

from rlcore.errors import ConfigError
from rlcore_plugin_runners.agents import _NATURE, Agent, DqnAgent
from rlcore_plugin_runners.algos import R2D1, Algorithm


class LstmAgent(Agent):
    """A policy and its values behind one LSTM; categorical or normal, as the actions ask for."""

    family = "policy gradient"
    recurrent = True

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        return {"use": "recurrent:lstm", "encoder_hidden": list(self.hidden)}


class RecurrentCategoricalPgAgent(LstmAgent):
    """The same, for discrete actions."""


class RecurrentGaussianPgAgent(LstmAgent):
    """The same, for continuous actions."""


class MujocoLstmAgent(RecurrentGaussianPgAgent):
    """The same, with standard deviations that do not depend on the observation."""

    hidden: ClassVar[tuple[int, ...]] = (256,)

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        return {**super()._section(algo, steps, itr_steps), "size": 256, "log_std": 0.0}


class AtariLstmAgent(RecurrentCategoricalPgAgent):
    """The same behind a convolutional network."""

    hidden: ClassVar[tuple[int, ...]] = ()
    of_images = True

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        return {**super()._section(algo, steps, itr_steps), "size": 512, "encoder": _NATURE}


class AlternatingAtariLstmAgent(AtariLstmAgent):
    """The same: the states of both halves are the collector's."""


class AlternatingMujocoLstmAgent(MujocoLstmAgent):
    """The same: the states of both halves are the collector's."""


class R2d1Agent(DqnAgent):
    """Action values behind an LSTM."""

    hidden: ClassVar[tuple[int, ...]] = (64,)
    recurrent = True

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        if not isinstance(algo, R2D1):
            raise ConfigError(f"{type(self).__name__} has a memory: train it with R2D1")
        network = {"use": "dqn:recurrent-q-network", "encoder_hidden": list(self.hidden)}
        return {**network, **self._falls(algo, steps, itr_steps)}

    def _own(self, section: dict[str, Any], model_class: type[nn.Module]) -> dict[str, Any]:
        return Agent._own(self, section, model_class)


class AtariR2d1Agent(R2d1Agent):
    """The same behind a convolutional network."""

    hidden: ClassVar[tuple[int, ...]] = ()
    of_images = True

    def _section(self, algo: Algorithm, steps: int, itr_steps: int) -> dict[str, Any]:
        return {**super()._section(algo, steps, itr_steps), "size": 512, "encoder": _NATURE}


class R2d1AlternatingAgent(R2d1Agent):
    """The same: the states of both halves are the collector's."""


class AtariR2d1AlternatingAgent(AtariR2d1Agent):
    """The same: the states of both halves are the collector's."""
