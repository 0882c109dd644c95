"""Finds what a name stands for among the published plugins, and says what to install where one is missing."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final

from rlcore.errors import MissingPluginError, did_you_mean, nearest
from rlcore.lazy import unknown
from rlcore.plugins.catalogue import PREFIX, PUBLISHED
from rlcore.plugins.registry import Owner, Provided

# optimizers of torch that no learner can use, and why
_REFUSED: Final = {
    "lbfgs": "asks for the loss several times in a step, by a closure, and the learner takes it once per minibatch",
    "muon": "steps matrices alone, and every layer has a bias besides",
    "sparseadam": "steps sparse gradients, and those of networks are dense",
}


def refused(kind: str, name: str) -> str:
    """Return `": why"` for something well known that cannot be a component, or an empty string."""
    why = _REFUSED.get(name.lower()) if kind == "optimizer" else None
    return "" if why is None else f": torch.optim has it, but it {why}"


def component_names(kind: str | None = None) -> dict[str, str]:
    """Return the plugin of each published component, of one kind or of all, in order of name."""
    return dict(
        sorted(
            (name, plugin)
            for plugin, published in PUBLISHED.items()
            for of, names in published.components.items()
            for name in names
            if kind in (None, of)
        )
    )


def kinds_of(name: str) -> list[str]:
    """Return the kinds of which a component of a name is published."""
    return [kind for published in PUBLISHED.values() for kind, names in published.components.items() if name in names]


def use_of(name: str) -> str:
    """Return what `use` says to name a published component, whichever plugins a config names besides."""
    plugin = component_names()[name]
    return name if plugin == name or PUBLISHED[plugin].of_core else f"{plugin}:{name}"


def plugin_of(use: str) -> str:
    """Return the plugin that provides what `use` names: the one it says, or the one that is called as the component.

    A component that configs name as one of the core may be of another plugin.
    """
    plugin, _, name = use.rpartition(":")
    publisher = component_names().get(name, "")
    if plugin in ("", "core") and publisher and PUBLISHED[publisher].of_core:
        return publisher
    return plugin or name


def same_owner(writer: str, provider: str) -> bool:
    """Return whether a component of two distributions is one; what left the core for a plugin is."""
    publisher = PUBLISHED.get(provider.removeprefix(PREFIX))
    return writer == provider or (writer == "rlcore" and publisher is not None and publisher.of_core)


def distribution_of(name: str) -> str | None:
    """Return the distribution of a published component or plugin, or None for any other name."""
    plugin = component_names().get(name, name)
    return PREFIX + plugin if plugin in PUBLISHED else None


def guess(kind: str, name: str, plugins: Iterable[str]) -> str:
    """Return `"; did you mean 'X'?"` for a component of that kind, or which ones are published.

    Args:
        kind: of the component.
        name: that nothing has.
        plugins: names of installed plugins; one that is not in the table may provide what is like its name.
    """
    published = [name for name, plugin in component_names(kind).items() if not PUBLISHED[plugin].for_tests]
    candidates = [*published, *(plugin for plugin in plugins if plugin not in {*PUBLISHED, "core"})]
    if nearest(name, candidates) is not None or not published:
        return did_you_mean(name, candidates)
    return f"; well known: {', '.join(map(use_of, published))}"


def not_installed(need: str, package: str, reason: str = "") -> MissingPluginError:
    """Return the error for a package that is not installed, with the command that installs it.

    Args:
        need: what needs it, such as `"WandbLogger is provided by"`.
        package: its name for `pip`.
        reason: why it may not be seen although it is there.
    """
    return MissingPluginError(f"{need} {package}, which is not installed{reason}: pip install {package}")


def published(kind: str, name: str) -> Provided:
    """Return a published component, without a config that names it.

    Raises:
        PluginError: its plugin is not installed, or broken; says how to install it.
    """
    plugin = component_names(kind)[name]
    module = _module(plugin, "", f"{kind} {name!r}")
    component = next(one for one in module.provide_components() if (one.kind, one.name) == (kind, name))
    return Provided(component, Owner(plugin, PREFIX + plugin, _version(PREFIX + plugin)))


def lent_to(package: str) -> dict[str, tuple[str, str]]:
    """Return the names that a package lends on: the plugin of each, and the module in it."""
    return {
        name: (plugin, module)
        for plugin, published in PUBLISHED.items()
        for name, module in published.lends.get(package, {}).items()
    }


def lend(package: str, name: str, need: str = "") -> Any:
    """Return a name that a plugin lends to a package.

    Args:
        package: that lends it on, of the core unless a plugin asks another.
        name: lent to it.
        need: what a user asked for, where that is not the name itself.

    Raises:
        PluginError: the plugin is not installed; says how to install it.
        AttributeError: nobody lends such a name.
    """
    lent = lent_to(package)
    if name not in lent:
        raise unknown(package, name, lent)
    plugin, module = lent[name]
    return getattr(_module(plugin, f".{module}", need or f"{package}.{name}"), name)  # the table holds names


def _module(plugin: str, below: str, what: str) -> ModuleType:
    """Import a module of a plugin."""
    package = (PREFIX + plugin).replace("-", "_")
    try:
        return importlib.import_module(package + below)
    except ModuleNotFoundError as error:
        if error.name is None:
            raise
        lacking = error.name.partition(".")[0]
        if lacking == package:
            raise not_installed(f"{what} is provided by", PREFIX + plugin) from error
        raise not_installed(f"{what}, of {PREFIX + plugin}, needs", lacking) from error


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:  # its package lies on the path without being installed
        return "of unknown version"
