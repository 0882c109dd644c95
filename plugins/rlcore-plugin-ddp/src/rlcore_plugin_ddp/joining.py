"""Where a process that was started as a rank finds its group.

The environment variable `RLCORE_GROUP` holds a JSON object, which `Memory.environment` writes: `fd`, `size`, `rank`,
`generation`, `deadline` and `spin` as arguments of `Memory`, and `use`: `"shared"`, or `"gloo"` with the arguments of
`GlooGroup.on_one_host`.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import TYPE_CHECKING, Final

from rlcore_plugin_ddp.memory import ENVIRONMENT, Memory

if TYPE_CHECKING:
    from rlcore.types import Group

# whose stores are seen by other cores in the order in which they were made
_ORDERED: Final = ("x86_64", "AMD64")


def best() -> str:
    """Return which group is the right one for the ranks of this host, without CUDA: `"shared"` or `"gloo"`."""
    return "shared" if sys.platform == "linux" and platform.machine() in _ORDERED else "gloo"


def joined() -> Group | None:
    """Return the group of this process, or None if it was started as no rank; to be called once.

    Raises:
        RankLost: the generation of this rank is over.
        ConfigError: this rank runs already.
    """
    text = os.environ.pop(ENVIRONMENT, None)  # what this process starts is no rank
    if text is None:
        return None
    facts = json.loads(text)
    use = facts.pop("use", "shared")
    arguments = {name: facts.pop(name) for name in ("fd", "size", "generation", "rank", "deadline", "spin")}
    os.set_inheritable(arguments["fd"], False)
    memory = Memory(**arguments)
    if use == "gloo":
        from rlcore_plugin_ddp.gloo import GlooGroup

        return GlooGroup.on_one_host(memory, **facts)
    from rlcore_plugin_ddp.shared import SharedGroup

    return SharedGroup(memory)
