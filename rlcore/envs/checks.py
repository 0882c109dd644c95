"""Whether a vector env goes on exactly after a resume."""

from __future__ import annotations

from rlcore.types import Env, Stateful, offers
from rlcore.types.part import with_defaults


def inexact_env(env: Env) -> str | None:
    """Return why a resume begins new episodes in these envs, or None when they go on in the middle of theirs."""
    if not offers(env, Stateful):
        return f"env {env.spec.id!r} has no state that could be saved; a resume begins new episodes"
    return with_defaults(env, Env).inexact()


def unrestored_env(env: Env) -> str | None:
    """Return what the last `load_state_dict` of these envs could not bring back, or None."""
    return with_defaults(env, Env).unrestored()
