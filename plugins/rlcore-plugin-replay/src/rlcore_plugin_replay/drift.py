"""Observations that are not comparable: replayed ones that keep statistics which have moved since."""

from __future__ import annotations

import logging

from rlcore.types import Context

log = logging.getLogger(__name__)


def warn_of_drift(context: Context) -> None:
    """Warn of each transform that has `drifts`, its name: one state looks otherwise in each part of the replay."""
    for transform in context.built.get("transforms", []):
        if name := getattr(transform, "drifts", None):
            log.warning(
                "[transform] %s: replayed observations keep the statistics of their time, while those of new ones move "
                'on, and what was learnt is forgotten with it; use = "gymnasium:observation-norm" takes them once, '
                "before training",
                name,
            )
