"""Names of metrics: a hook may give one that the core gives too, and both are kept."""

from __future__ import annotations

import logging
from typing import Any

from rlcore.types.hook_parts import under_name_of

log = logging.getLogger(__name__)


class Names:
    """Knows who gives a metric.

    Attributes:
        core: names that the loop and its parts give.
        given: names that hooks give, with the name of the hook.
        apart: names that are given twice.
    """

    def __init__(self) -> None:
        self.core: set[str] = set()
        self.given: dict[str, str] = {}
        self.apart: set[str] = set()

    def of_hook(self, key: str, hook: str) -> str:
        """Return the name under which a metric of a hook is kept."""
        if key in self.core or key in self.apart or self.given.setdefault(key, hook) != hook:
            return self._part(key, hook)
        return key

    def of_core(self, key: str, *stores: dict[str, Any]) -> str:
        """Give a name of a hook to the core; return the name for what the hook gave, under which stores now have it."""
        own = self._part(key, self.given.pop(key))
        for store in stores:
            if key in store:
                store[own] = store.pop(key)
        return own

    def _part(self, key: str, hook: str) -> str:
        own = under_name_of(hook, key)
        if key not in self.apart:
            self.apart.add(key)
            log.warning("metric %r of hook %r is given elsewhere too; that of the hook is kept as %r", key, hook, own)
        return own
