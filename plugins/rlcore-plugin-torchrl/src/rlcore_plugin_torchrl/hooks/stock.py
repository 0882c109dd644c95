"""The base of the hook objects that TorchRL has too; `originals.json` has the names that a subclass may override."""

from __future__ import annotations

from typing import Final

from rlcore import TrainerHookBase
from rlcore.types import Carries, Original, originals

_SENDS: Final = "hand policy_weights_getter, or register an operation at post_steps"
_INSTEAD: Final = {
    "_apply_reduction": "reduction names how values become one",
    "_compute_and_clip_grad_norm": "clip_grad_norm and clip_norm of the trainer say it",
    "_optimizer_step_count": _SENDS,
    "_resolve_metric": "monitor names the metric",
    "_step": "override step",
    "_update_with_map": _SENDS,
}


class StockHook(Carries, TrainerHookBase):
    """Refuses a subclass that overrides what would never be called; see `rlcore.types.Carries`."""

    original = Original("TorchRL", originals("rlcore_plugin_torchrl")["names"], _INSTEAD)
