"""The weight of the entropy in a loss: learned so that the entropy is that of the target, or fixed."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field
from torch import Tensor, nn

FixedTemperature: TypeAlias = Literal["auto"] | Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SoftLoss(nn.Module):
    """A loss with a temperature (Haarnoja et al., 2018, arXiv 1812.05905, section 5).

    Attributes:
        temperature: the model's.
        loss_names: every loss that it returns; `loss_temperature` where that is learned.
        schedulable: `target_entropy`, or `temperature` where it is fixed.
    """

    loss_names: tuple[str, ...] = ("loss_critics", "loss_actor")

    def keep_temperature(self, temperature: nn.Module, given: FixedTemperature, target_entropy: float) -> None:
        """Take the part of the model, and what is said of it.

        Args:
            temperature: the part.
            given: `auto`, or its value.
            target_entropy: the entropy to keep.
        """
        self.temperature = temperature
        self._learns = given == "auto"
        self.schedulable: dict[str, Any] = {}
        if self._learns:
            self.loss_names = (*self.loss_names, "loss_temperature")
            self.schedulable["target_entropy"] = target_entropy
        else:
            self.temperature.requires_grad_(False)
            self.schedulable["temperature"] = given

    def alpha(self) -> Tensor | float:
        """Return the temperature, without gradients."""
        found: Tensor | float = self.temperature().detach() if self._learns else self.schedulable["temperature"]
        return found

    def temperature_loss(self, entropy: Tensor, choice: Tensor | float = 1.0) -> dict[str, Tensor]:
        """Return the loss of equation 18 by the logarithm of the temperature, and the metric `temperature`.

        Args:
            entropy: mean over the samples, 0-d, without gradients.
            choice: a factor of the target.
        """
        loss = self.temperature.log_alpha * (entropy - choice * self.schedulable["target_entropy"])
        return {"loss_temperature": loss, "temperature": self.temperature().detach()}
