"""What learners from single transitions share: names of what modules return, discounts, weights of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from torch import Tensor

from rlcore_plugin_learners.columns import Columns

ATOMS: Final = "atoms"
QF_LOGITS: Final = "qf_logits"
QF_NEXT_PREDS: Final = "qf_next_preds"
QF_PREDS: Final = "qf_preds"
QF_PROBS: Final = "qf_probs"
QF_TARGET_NEXT_PREDS: Final = "qf_target_next_preds"
QF_TARGET_NEXT_PROBS: Final = "qf_target_next_probs"
N_STEP: Final = "n_step"
WEIGHTS: Final = "weights"
TD_ERROR: Final = "td_error"


def discounts(config: Any, batch: Mapping[str, Tensor]) -> Tensor:
    """Return the discount of what follows each row, `[row]`: of `n_step` steps, and 0 after a terminated one.

    Raises:
        UnwrittenEntryError: the config has another `n_step` than 1, and the batch no such column.
    """
    goes_on = (~batch[Columns.TERMINATEDS].bool()).float()
    if N_STEP not in batch and config.n_step == 1:
        return config.gamma * goes_on  # type: ignore[no-any-return]
    return config.gamma ** batch[N_STEP] * goes_on  # type: ignore[no-any-return]


def weighted(errors: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Return errors `[row]`, each times its `weights`, where the batch has such a column."""
    return errors * batch[WEIGHTS] if WEIGHTS in batch else errors
