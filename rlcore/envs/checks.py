"""Whether a vector env goes on exactly after a resume."""

from __future__ import annotations

from rlcore.types import Env, Stateful
from rlcore.types.optional import Inexact, Unrestored, offers


def inexact_env(env: Env) -> str | None:
    """Return why a resume begins new episodes in these envs, or None when they go on in the middle of theirs."""
    if not offers(env, Stateful):
        return f"env {env.spec.id!r} has no state that could be saved; a resume begins new episodes"
    return env.inexact() if offers(env, Inexact) else None


def unrestored_env(env: Env) -> str | None:
    """Return what the last `load_state_dict` of these envs could not bring back, or None."""
    return env.unrestored() if offers(env, Unrestored) else None
