"""Moves target networks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from rlcore.core_hooks.base import TrainerHookBase
from rlcore.errors import HookArgumentError
from rlcore.types import Stateful
from rlcore.types.foreign import Stepping
from rlcore.types.optional import offers


class TargetNetUpdaterHook(TrainerHookBase):
    """Lets an updater of target networks take a step after each optimisation step.

    Args:
        target_params_updater: has `step()`, and perhaps `state_dict` and `load_state_dict`.

    Raises:
        HookError: it has no `step`.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({"post_optim": "__call__"})
    default_name: ClassVar[str] = "target_net_updater"

    def __init__(self, target_params_updater: Any) -> None:
        if not offers(target_params_updater, Stepping):
            raise HookArgumentError(
                f"target_params_updater: a {type(target_params_updater).__name__} has no step() that moves targets"
            )
        self.target_params_updater: Any = target_params_updater

    def __call__(self) -> None:
        """Move the targets."""
        self.target_params_updater.step()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the updater, where it has one."""
        return dict(self.target_params_updater.state_dict()) if offers(self.target_params_updater, Stateful) else {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the state of the updater."""
        if state_dict:
            self.target_params_updater.load_state_dict(dict(state_dict))
