"""Finding plugins by their entry points, deciding which to import, and importing them.

Only metadata is read until a config names a plugin. Building components is in `registry.py`.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from rlcore.errors import (
    FROM_OUTSIDE,
    NotProvidedError,
    PluginError,
    UnnamedPluginError,
    did_you_mean,
    nearest,
)
from rlcore.hooks.resolution import marked
from rlcore.plugins.component import COMPONENT_SECTIONS, Component
from rlcore.plugins.core import CORE
from rlcore.plugins.discovery import broken, installed
from rlcore.plugins.known import (
    component_names,
    distribution_of,
    guess,
    kinds_of,
    not_installed,
    plugin_of,
    refused,
    use_of,
)
from rlcore.plugins.registry import Owner, Provided, Registry

NO_PLUGINS: Final = "RLCORE_NO_PLUGINS"


class PluginHost:
    """Imports the plugins that a run names and gathers their components.

    Args:
        disable: names of plugins that must not be imported.
    """

    def __init__(self, disable: Iterable[str] = ()) -> None:
        self.registry = Registry()
        self.loaded: dict[str, Owner] = {}
        self._modules: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._disabled = set(disable)
        self._installed = [p for p in installed() if p.name == CORE or not os.environ.get(NO_PLUGINS)]
        self.load(CORE)

    def names(self) -> list[str]:
        """Return the names of the plugins that could be loaded."""
        return sorted({plugin.name for plugin in self._installed})

    def modules(self) -> dict[str, str]:
        """Return the module of each loaded plugin that may change results, to the distribution or file it is of.

        One that provides nothing but loggers may not.
        """
        kinds: dict[str, set[str]] = {}
        for provided in self.registry.provided:
            kinds.setdefault(provided.owner.plugin, set()).add(provided.component.kind)
        return {
            module: self.loaded[plugin].distribution
            for plugin, module in self._modules.items()
            if kinds.get(plugin) != {"logger"}
        }

    def files(self) -> dict[str, str]:
        """Return the module name of each plugin that was loaded from a loose file, to the absolute path of the file."""
        return dict(self._files)

    def is_installed(self, name: str) -> bool:
        """Return whether a plugin of that entry-point name exists."""
        return any(plugin.name == name for plugin in self._installed)

    def find(self, kind: str, use: str) -> Provided:
        """Return the component that `use` names, among those of the loaded plugins.

        Raises:
            PluginError: there is none, or several; says which command installs it, if that is known.
        """
        try:
            return self.registry.find(kind, use)
        except NotProvidedError as error:
            raise self._not_found(kind, use, error) from error

    def _not_found(self, kind: str, use: str, error: NotProvidedError) -> PluginError:
        """Return the error for a component that no loaded plugin provides, with where it is, or what is like it."""
        plugin, _, name = use.rpartition(":")
        if why := refused(kind, name):
            return NotProvidedError(f"{kind} {use!r} cannot be used{why}")
        elsewhere = self._of_another_kind(kind, name)
        if elsewhere or self.is_installed(plugin_of(use)):
            return NotProvidedError(f"{error}{elsewhere}")
        if plugin or distribution_of(name):
            return self.not_installed(name if plugin in ("", CORE) else plugin)
        provided = {entry.component.name for entry in self.registry.of_kind(kind)}
        further = "" if nearest(name, provided) else guess(kind, name, self.names())
        return NotProvidedError(f"{error}{further}")

    def _of_another_kind(self, kind: str, name: str) -> str:
        """Return of which kind the component of a name is, and how to name it, where it is none of this kind."""
        uses = {entry.component.kind: entry.use for entry in self.registry.provided if entry.component.name == name}
        uses |= {published: use_of(name) for published in kinds_of(name)}
        if not uses or kind in uses:
            return ""
        actual, use = next(iter(uses.items()))
        section, repeated = next((label, many) for label, (of, many) in COMPONENT_SECTIONS.items() if of == actual)
        place = f"[[{section}]]" if repeated else f"[{section}]"
        return f"; {name!r} is of kind {actual}: it belongs in {place}, use = {use!r}"

    def load_for(self, use: str) -> None:
        """Import the plugin that `use` may be of: the one it names, or the one of the component's name, if installed.

        Raises:
            PluginError: it is broken.
        """
        owner = plugin_of(use)
        if owner not in self.loaded and self.is_installed(owner):
            self.load(owner)

    def load(self, name: str) -> None:
        """Import plugin `name` and register its components; again is nothing.

        Raises:
            PluginError: not installed, disabled, claimed by two distributions, for another rlcore, or broken.
        """
        if name in self.loaded:
            return
        if name in self._disabled:
            raise PluginError(f"plugin {name!r} is named by the config but disabled; remove one of the two")
        claimed = [plugin for plugin in self._installed if plugin.name == name]
        if not claimed:
            raise self.not_installed(name)
        if len(claimed) > 1:
            owners = " and ".join(str(plugin.owner) for plugin in claimed)
            raise PluginError(f"plugin name {name!r} is claimed by {owners}; uninstall one of them")
        self._register(claimed[0].load("plugin"), claimed[0].owner)

    def not_installed(self, name: str) -> PluginError:
        """Return the error for a plugin that is not installed, with the command that installs it."""
        blocked = f" ({NO_PLUGINS} is set)" if os.environ.get(NO_PLUGINS) else ""
        distribution = distribution_of(name)
        here = next((plugin.name for plugin in self._installed if plugin.distribution == distribution), None)
        if here:
            return UnnamedPluginError(
                f"{name!r} is provided by plugin {here!r}, which the config does not name: write use = '{here}:{name}'"
            )
        if distribution:
            return not_installed(f"{name!r} is provided by", distribution, blocked)
        likely = did_you_mean(name, [*self.names(), *component_names()])
        return NotProvidedError(f"no plugin or component {name!r} is installed{blocked}{likely}")

    def load_file(self, path: Path) -> None:
        """Import a loose file as a plugin named after it.

        Raises:
            PluginError: the file is missing or broken.
        """
        if not path.is_file():
            raise PluginError(f"plugins.files names {str(path)!r}, which does not exist")
        name = loose_name(path)
        self._check_free(path, name)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise PluginError(f"plugins.files names {str(path)!r}, which is not a Python file")
        owner = Owner(name, path.name, "loose file")
        try:
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module  # before it runs: dataclasses in it look their module up by its name
            spec.loader.exec_module(module)
        except FROM_OUTSIDE:
            raise
        except BaseException as error:
            sys.modules.pop(path.stem, None)
            raise broken(f"plugin file {str(path)!r}", error) from error
        self._register(module, owner)
        self._files[module.__name__] = str(path.absolute())

    def _check_free(self, path: Path, name: str) -> None:
        """Refuse a loose file that is disabled, or would hide a plugin or a module."""
        if name in self._disabled:
            raise PluginError(f"plugin {name!r} is named by plugins.files but disabled; remove one of the two")
        imported = sys.modules.get(path.stem)  # with components, it is the same file, read for an earlier config
        hides = imported is not None and "provide_components" not in dir(imported)
        if hides or path.stem in sys.stdlib_module_names or self.is_installed(name) or name in self.loaded:
            raise PluginError(
                f"plugins.files names {str(path)!r}, which would hide the module or plugin {path.stem!r}; "
                "rename the file"
            )

    def _register(self, module: ModuleType | Any, owner: Owner) -> None:
        for name in marked(module):
            if name != "provide_components":
                raise PluginError(
                    f"plugin {owner.plugin!r} ({owner}) implements {name!r}, which a plugin module cannot"
                    f"{did_you_mean(name, ['provide_components'])}; points of the loop belong in a hook component"
                )
        if "provide_components" not in marked(module):
            raise PluginError(f"plugin {owner.plugin!r} ({owner}) has no function provide_components with @hookimpl")
        try:
            components = list(module.provide_components())
        except FROM_OUTSIDE:
            raise
        except BaseException as error:
            raise broken(f"plugin {owner.plugin!r} ({owner}): provide_components", error) from error
        for component in components:
            if not isinstance(component, Component):
                raise PluginError(f"plugin {owner.plugin!r} ({owner}) provides {component!r}, not a Component")
        self.registry.add(components, owner)
        self.loaded[owner.plugin] = owner
        self._modules[owner.plugin] = module.__name__


def loose_name(path: Path) -> str:
    """Return the name of the plugin that a loose file is."""
    return path.stem.replace("_", "-")
