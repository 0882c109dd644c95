"""What to install, or to write, where an environment cannot be made: another thing for each family of environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import gymnasium

# the package of an env's code in Gymnasium, to what is installed for it
_EXTRAS: Final[Mapping[str, str]] = {
    "gymnasium.envs.box2d": "rlcore-plugin-gymnasium[box2d]",
    "gymnasium.envs.classic_control": "rlcore-plugin-gymnasium[classic-control]",
    "gymnasium.envs.mujoco": "rlcore-plugin-gymnasium[mujoco]",
    "gymnasium.envs.phys2d": "gymnasium[jax]",
    "gymnasium.envs.tabular": "gymnasium[jax]",
    "gymnasium.envs.toy_text": "gymnasium[toy-text]",
}
# the namespace of an id, to its package and the module that registers it
_NAMESPACES: Final[Mapping[str, tuple[str, str]]] = {
    "ALE": ("rlcore-plugin-gymnasium[atari]", "ale_py"),
    "MinAtar": ("rlcore-plugin-gymnasium[minatar]", "minatar"),
    "highway": ("highway-env", "highway_env"),
    "minari": ("minari", "minari"),
    "bsuite": ("shimmy[bsuite]", "shimmy"),
    "dm_control": ("shimmy[dm-control]", "shimmy"),
    "gymnasium_robotics": ("gymnasium-robotics", "gymnasium_robotics"),
}
_PREFIXES: Final[Mapping[str, tuple[str, str]]] = {
    "MiniGrid-": ("rlcore-plugin-gymnasium[minigrid]", "minigrid"),
    "BabyAI-": ("rlcore-plugin-gymnasium[minigrid]", "minigrid"),
    "Fetch": ("gymnasium-robotics", "gymnasium_robotics"),
    "procgen-": ("procgen", "procgen"),
}


def on_a_missing_package(env_id: str) -> str:
    """Return how to install what an id needs, which its family says; nothing where the id is unknown."""
    name = env_id.rpartition(":")[2]
    try:
        entry_point = gymnasium.spec(name).entry_point
    except gymnasium.error.Error:
        return ""
    place = entry_point if isinstance(entry_point, str) else getattr(entry_point, "__module__", "")
    extra = next((extra for package, extra in _EXTRAS.items() if place.startswith(package)), None)
    return "; pip install the package that it names" if extra is None else f"; pip install '{extra}'"


def on_an_unknown_id(env_id: str) -> str:
    """Return where an id may come from that nothing has registered; nothing where it names a module itself."""
    module, _, name = env_id.rpartition(":")
    if module:
        return ""
    namespace, slash, _ = name.rpartition("/")
    provider = (
        _NAMESPACES.get(namespace) if slash else next((p for n, p in _PREFIXES.items() if name.startswith(n)), None)
    )
    if provider is None:
        return '; an id of another package names the module that registers it: "module:Id-v0"' if slash else ""
    package, registers = provider
    return f'; pip install {_quoted(package)}, and write id = "{registers}:{name}", which imports it first'


def on_a_missing_module(env_id: str, missing: str | None) -> str:
    """Return how a module that an id names is found: as a file that the config names, or as an installed package."""
    module = env_id.rpartition(":")[0]
    if not module or missing != module.partition(".")[0]:
        return ""
    published = {registers: package for package, registers in (*_NAMESPACES.values(), *_PREFIXES.values())}
    if missing in published:
        return f"; pip install {_quoted(published[missing])}"
    return (
        f"; a module of your own, {missing}.py, lies beside the config or in a folder of [plugins] path; a package "
        "must be installed"
    )


def _quoted(package: str) -> str:
    """Return a package for a shell, which takes brackets for a pattern."""
    return f"'{package}'" if "[" in package else package
