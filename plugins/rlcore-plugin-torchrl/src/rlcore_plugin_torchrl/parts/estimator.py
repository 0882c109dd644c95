"""Value estimators of TorchRL by name, over the value network of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from pydantic import Field

from rlcore.errors import ConfigError
from rlcore.types import Context, Estimator
from rlcore_plugin_torchrl.parts.model import TorchRLModel
from rlcore_plugin_torchrl.parts.sections import PartConfig, called
from rlcore_plugin_torchrl.parts.signatures import keywords_of

if TYPE_CHECKING:
    from tensordict import TensorDict

_OF_MODEL = "is a network of [model]; name it there"
_RESULTS = ("state_value", "advantage", "value_target")


class TorchRLEstimator(Estimator):
    """A value estimator of TorchRL by the name of its class, such as `GAE`.

    Attributes:
        module: of TorchRL.
    """

    requires = ("value",)

    class Config(PartConfig):
        """Which estimator, and when to estimate."""

        kind_of_part = "value estimator"
        provided: ClassVar = {"value_network": _OF_MODEL, "actor_network": _OF_MODEL}

        gamma: float = Field(0.99, ge=0, le=1, description="discount")
        every: Literal["batch", "epoch"] = Field("batch", description="estimate once, or again before each epoch")

        def given_by_rlcore(self) -> Any:
            """Return the names of the arguments that the config need not say."""
            return (*self.provided, "gamma")

    def __init__(self, config: Config, context: Context) -> None:
        model: Any = context.model
        if not isinstance(model, TorchRLModel):
            raise ConfigError(
                f"[estimator] part = {config.part!r}: these take networks of TorchRL; set [model] use = 'torchrl'"
            )
        self.every = config.every
        part, taken = config.part_class, keywords_of(config.part_class).parameters
        given = {
            "gamma": config.gamma,
            "value_network": model.value,
            "actor_network": model.actor and model.actor.module,
        }
        arguments = {name: value for name, value in given.items() if name in taken} | config.arguments("[estimator]")
        self.module: Any = called(part, arguments, "[estimator]").to(context.device)
        if "sample_log_prob" in vars(self.module.tensor_keys):
            self.module.set_keys(sample_log_prob="sample_log_prob")

    @torch.no_grad()
    def __call__(self, batch: TensorDict) -> None:
        """Set `state_value`, `advantage` and `value_target`, each `[env, time, 1]`."""
        estimated = self.module(batch.copy())
        for name in _RESULTS:
            batch.set(name, estimated.get(name).detach())
