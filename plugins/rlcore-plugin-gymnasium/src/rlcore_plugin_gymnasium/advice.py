"""What to install, or to write, where an environment cannot be made: another thing for each family of environments."""

from __future__ import annotations

import gymnasium

from rlcore.config import meant
from rlcore_plugin_gymnasium.families import FAMILIES, family_of


def on_a_missing_package(env_id: str) -> str:
    """Return how to install what an id needs, which its family says; nothing where the id is unknown."""
    family = family_of(env_id)
    if family is not None:
        return f"; {family.install}"
    return "; pip install the package that it names" if env_id.rpartition(":")[2] in gymnasium.registry else ""


def on_an_unknown_id(env_id: str) -> str:
    """Return where an id may come from that nothing has registered; nothing where it names a module itself."""
    module, _, name = env_id.rpartition(":")
    if module:
        return ""
    family = family_of(name)
    if family is not None:
        return "" if family.is_here else f"; {family.install}"
    if may_be_a_game(name):
        return "; a module with parallel_env, of PettingZoo, is for [env] use = 'pettingzoo'"
    return '; an id of another package names the module that registers it: "module:Id-v0"' if "/" in name else ""


def on_a_missing_module(env_id: str, missing: str | None) -> str:
    """Return how a module that an id names is found: as a file that the config names, or as an installed package."""
    module = env_id.rpartition(":")[0]
    if not module or missing != module.partition(".")[0]:
        return ""
    family = next((family for family in FAMILIES if missing in family.modules), None)
    if family is not None:
        return f"; {family.install}"
    return (
        f"{meant(missing)}; a module of your own, {missing}.py, lies beside the config or in a folder of [plugins] "
        "path; a package must be installed"
    )


def on_other_versions(env_id: str) -> str:
    """Return what is installed in a version that the family of an id is not known to work with, if anything is."""
    family = family_of(env_id)
    unmet = [] if family is None else family.unmet()
    if family is None or not unmet:
        return ""
    return f"; its library is not known to work with {', '.join(unmet)}: {family.install}"


def may_be_a_game(env_id: str) -> bool:
    """Return whether an id is the name of a module in a package, as those of PettingZoo's games are."""
    return "." in env_id and env_id.replace(".", "").isidentifier()
