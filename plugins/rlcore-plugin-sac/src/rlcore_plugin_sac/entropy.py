"""The weight of the entropy in a loss: learned so that the entropy is that of the target, or fixed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeAlias

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.types import Key, Loss
from rlcore_plugin_sac.box import ActionBox

FixedTemperature: TypeAlias = Literal["auto"] | Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]

TRAINS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"loss_critics": ("critics",), "loss_actor": ("actor",), "loss_temperature": ("temperature",)}
)


class SoftLoss(nn.Module, Loss):
    """A loss with a temperature (Haarnoja et al., 2018, arXiv 1812.05905, section 5).

    Attributes:
        temperature: the model's.
        loss_names: every loss that it returns; `loss_temperature` where that is learned.
        trains: by loss, the parts that it trains.
        schedulable: `target_entropy`, or `temperature` where it is fixed.
    """

    loss_names: tuple[str, ...] = ("loss_critics", "loss_actor")
    trains = TRAINS

    def keep_temperature(self, temperature: nn.Module, config: BaseModel, target_entropy: float) -> None:
        """Take the part of the model, and what the config says of it.

        Args:
            temperature: the part.
            config: has the keys `temperature`, auto or its value, and `target_entropy`.
            target_entropy: the entropy to keep, in nats.

        Raises:
            ConfigError: no policy has so much entropy; or a fixed temperature has a target that counts for nothing.
        """
        settings: Any = dict(config)
        self.temperature = temperature
        self._learns = settings["temperature"] == "auto"
        self.schedulable: dict[str, Any] = {}
        if self._learns:
            self.check_number("target_entropy", target_entropy)
            self.loss_names = (*self.loss_names, "loss_temperature")
            self.schedulable["target_entropy"] = target_entropy
            return
        self.temperature.requires_grad_(False)
        self.schedulable["temperature"] = settings["temperature"]
        # a resolved config says the default too
        if settings["target_entropy"] != type(config).model_fields["target_entropy"].default:
            raise ConfigError("[loss] target_entropy counts with temperature = 'auto' alone; leave it out")

    def check_number(self, number: str, value: float) -> None:
        """Refuse a number of `schedulable` that the policy cannot follow.

        Raises:
            ConfigError: it is an entropy that no policy has.
        """
        if number == "target_entropy":
            self.check_entropy(value)

    def check_entropy(self, entropy: float) -> None:
        """Refuse an entropy, in nats, that no policy over these actions has.

        Raises:
            ConfigError: it is one.
        """
        raise NotImplementedError

    def alpha(self) -> Tensor | float:
        """Return the temperature, without gradients."""
        alpha: Tensor | float = self.temperature().detach() if self._learns else self.schedulable["temperature"]
        return alpha

    def temperature_loss(self, entropy: Tensor, choice: Tensor | float = 1.0) -> dict[str, Tensor]:
        """Return the loss of equation 18 by the logarithm of the temperature, and the metric `temperature`.

        Args:
            entropy: mean over the samples, 0-d, without gradients.
            choice: a factor of the target.
        """
        loss = self.temperature.log_alpha * (entropy - choice * self.schedulable["target_entropy"])
        return {"loss_temperature": loss, "temperature": self.temperature().detach()}


class BoundedSoftLoss(SoftLoss):
    """A `SoftLoss` over actions with bounds."""

    _box: ActionBox

    def check_entropy(self, entropy: float) -> None:
        """Refuse an entropy that no squashed distribution over these actions has."""
        check_bounded_entropy(entropy, self._box.size)

    def sample_noise(self, samples: int, generator: torch.Generator) -> dict[Key, Tensor]:
        """Return the noise of the actions, `noise` and `("next", "noise")`, each `[sample, action]`."""
        shape, device = (2, samples, self._box.size), generator.device
        now, following = torch.randn(shape, generator=generator, device=device).unbind(0)
        return {"noise": now, ("next", "noise"): following}


def default_entropy(given: float | None, actions: int) -> float:
    """Return the entropy to keep of so many actions: as given, or by default minus their number."""
    return -float(actions) if given is None else given


def check_bounded_entropy(entropy: float, actions: int) -> None:
    """Refuse an entropy that no distribution over so many actions between -1 and 1 has.

    Raises:
        ConfigError: it is one; the temperature would grow for ever.
    """
    largest = actions * math.log(2)
    if entropy >= largest:
        raise ConfigError(
            f"[loss] target_entropy = {entropy} cannot be reached: {actions} actions, scaled to [-1, 1], have at most "
            f"{largest:.4g}, and the temperature would grow for ever; the default is {-actions}"
        )
