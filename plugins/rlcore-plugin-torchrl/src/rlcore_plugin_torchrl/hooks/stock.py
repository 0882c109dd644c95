"""The base of the hook objects that TorchRL has too; a file beside has the names that a subclass may override."""

from __future__ import annotations

import json
from functools import cache, partial
from importlib.resources import files
from typing import Final

from rlcore import TrainerHookBase
from rlcore.types import Carries, Original

_SENDS: Final = "hand policy_weights_getter, or register an operation at post_steps"
_INSTEAD: Final = {
    "_apply_reduction": "reduction names how values become one",
    "_compute_and_clip_grad_norm": "clip_grad_norm and clip_norm of the trainer say it",
    "_optimizer_step_count": _SENDS,
    "_resolve_metric": "monitor names the metric",
    "_step": "override step",
    "_update_with_map": _SENDS,
}


@cache
def _names(kind: str) -> frozenset[str]:
    return frozenset(json.loads(files(__package__).joinpath("torchrl_names.json").read_text()).get(kind, ()))


class StockHook(Carries, TrainerHookBase):
    """Refuses a subclass that overrides what would never be called; see `rlcore.types.Carries`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__.startswith("rlcore_plugin_torchrl."):
            cls.original = Original("TorchRL", partial(_names, cls.__name__), _INSTEAD)
