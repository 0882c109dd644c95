"""Advantages and value targets of the rows of episodes."""

from __future__ import annotations

from typing import Any

import torch
from rlcore_plugin_ppo.estimator import discounted_sum

from rlcore_plugin_learners.batches import ModuleBatch
from rlcore_plugin_learners.columns import Columns


def with_advantages(columns: ModuleBatch, module: Any, config: Any) -> ModuleBatch:
    """Return columns with `advantages` and `value_targets` besides, by GAE (Schulman et al., 2016, arXiv 1506.02438).

    Advantages are standardised over all rows.

    Args:
        columns: of whole episodes, each with a row after its last step.
        module: has `compute_values`.
        config: has `gamma` and `lambda_`.
    """
    with torch.no_grad():
        values = module.compute_values(columns).float()
    goes_on = (~columns[Columns.TERMINATEDS].bool()).float()
    follows = goes_on * (~columns[Columns.TRUNCATEDS].bool()).float()
    after = torch.cat([values[1:], torch.zeros_like(values[:1])])
    errors = columns[Columns.REWARDS] + config.gamma * goes_on * after - values
    discounts = config.gamma * config.lambda_ * follows
    advantages = discounted_sum(errors[None, :, None], discounts[None, :, None])[0, :, 0]
    targets = advantages + values
    spread = advantages.std(unbiased=False).clamp(min=1e-4)
    standard = (advantages - advantages.mean()) / spread
    return ModuleBatch({**columns, Columns.ADVANTAGES: standard, Columns.VALUE_TARGETS: targets})
