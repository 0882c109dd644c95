"""Envs of tensors that stay on one device, and the collector that steps them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore import Component, hookimpl
from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore_plugin_device.functional import FunctionalEnv as FunctionalEnv
    from rlcore_plugin_device.functional import Moment as Moment
    from rlcore_plugin_device.functional import State as State
    from rlcore_plugin_device.random import Random as Random
    from rlcore_plugin_device.tensor_env import TensorEnv as TensorEnv
    from rlcore_plugin_device.tensor_env import TensorStep as TensorStep

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore_plugin_device.functional": "FunctionalEnv Moment State",
        "rlcore_plugin_device.random": "Random",
        "rlcore_plugin_device.tensor_env": "TensorEnv TensorStep",
    },
)


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "collector",
            "device",
            f"{__name__}.collector:DeviceCollector",
            summary="steps envs of tensors where the model is, without the host",
        ),
    ]
