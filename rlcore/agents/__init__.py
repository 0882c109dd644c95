"""Trained policies outside of training: an agent acts on what an env gives, with its transforms inside."""

from __future__ import annotations

from typing import Any

from rlcore.lazy import lazy


def _lent(name: str) -> Any:
    """Return a name that a plugin lends while it is installed, as the writer of videos."""
    from rlcore.plugins.known import lend

    return lend(__name__, name)


__all__, __getattr__, __dir__ = lazy(__name__, {}, _lent)
