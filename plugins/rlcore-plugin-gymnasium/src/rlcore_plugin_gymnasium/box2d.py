"""Box2D envs that keep their world from episode to episode: it remembers in what order bodies came and went.

Contacts are solved in that order, so the last bits of a step depend on all episodes before, and no attribute tells.
With a new world an episode depends on its seed alone, as the first one does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

_PLACE: Final = "gymnasium.envs.box2d."


def reset_of(env: Any) -> Callable[..., Any]:
    """Return the `reset` of an env; for one of Gymnasium's that keep their world, with a new one before it."""
    base = env.unwrapped
    if not type(base).__module__.startswith(_PLACE) or not hasattr(base, "world"):
        return env.reset  # type: ignore[no-any-return]

    def reset(**keywords: Any) -> Any:
        _renew_world(base)
        return env.reset(**keywords)

    return reset


def _renew_world(base: Any) -> None:
    """Destroy what is left of the last episode, as the `reset` of the env would, and begin a world like the first."""
    if base.world is None:
        return
    base._destroy()
    base.world = type(base.world)(gravity=base.world.gravity, contactListener=base.world.contactListener)
