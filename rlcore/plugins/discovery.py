"""Which plugins are installed, from their entry points and metadata alone."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from rlcore.errors import FROM_OUTSIDE, PluginError, RlcoreError, describe
from rlcore.plugins.registry import Owner

GROUP: Final = "rlcore"


@dataclass(frozen=True)
class Installed:
    """An entry point, known from metadata alone."""

    name: str
    module: str
    distribution: str
    version: str
    requires_rlcore: str = ""
    summary: str = ""
    entry_point: importlib.metadata.EntryPoint | None = field(default=None, repr=False, compare=False)

    @property
    def owner(self) -> Owner:
        """Whose the plugin is."""
        return Owner(self.name, self.distribution, self.version)

    def load(self, what: str) -> Any:
        """Import what the entry point names.

        Args:
            what: kind of what it is, for messages, such as `"plugin"`.

        Raises:
            PluginError: it is for another rlcore, or the import fails.
        """
        conflict = version_conflict(self)
        if conflict:
            raise PluginError(conflict)
        assert self.entry_point is not None  # `installed` makes none without
        try:
            return self.entry_point.load()
        except FROM_OUTSIDE:
            raise
        except BaseException as error:
            raise broken(f"{what} {self.name!r} ({self.owner})", error) from error


def broken(what: str, error: BaseException) -> PluginError:
    """Return the error for something whose code failed, with the command that installs what it lacks."""
    absent = isinstance(error, ModuleNotFoundError) and not isinstance(error, RlcoreError) and error.name
    command = f" (pip install {absent})" if absent else ""
    return PluginError(f"{what} failed: {describe(error)}{command}")


def installed(group: str = GROUP) -> list[Installed]:
    """Return every installed plugin, or what another group of entry points names, in order of name.

    Nothing is imported. The metadata are read once for as long as no folder on the path changes, as every installation
    changes one.
    """
    return list(_read(group, tuple((place, _changed(place)) for place in sys.path)))


def _changed(place: str) -> int | None:
    """Return when a folder or archive on the path changed last, in nanoseconds; None where there is none."""
    try:
        return os.stat(place or ".").st_mtime_ns  # the empty string stands for the working directory
    except OSError:
        return None


@lru_cache(maxsize=4)
def _read(group: str, places: tuple[tuple[str, int | None], ...]) -> tuple[Installed, ...]:
    """Return every entry point of a group that is installed while the places are what they are."""
    plugins: dict[tuple[str, str], Installed] = {}
    for entry_point in importlib.metadata.entry_points(group=group):
        name, version, requires, summary = _identity(entry_point.dist)
        plugin = Installed(entry_point.name, entry_point.value, name, version, requires, summary, entry_point)
        plugins.setdefault((plugin.name, plugin.distribution), plugin)
    return tuple(sorted(plugins.values(), key=lambda plugin: (plugin.name, plugin.distribution)))


def _identity(distribution: importlib.metadata.Distribution | None) -> tuple[str, str, str, str]:
    """Return name, version, range of rlcore, summary.

    Where an installation broke off, or goes on just now, they are None, or the backport of `importlib.metadata` raises.
    """
    try:
        if distribution is not None:
            metadata = distribution.metadata  # each look parses the file again
            name, version, summary = ((metadata.get_all(key) or [""])[0] for key in ("Name", "Version", "Summary"))
            requires = metadata.get_all("Requires-Dist") or distribution.requires or []
            return name or "unknown", version or "0", _requirement(requires), summary
    except (ImportError, OSError):
        pass
    return "unknown", "0", "", ""


def _requirement(requires: Sequence[str]) -> str:
    from packaging.requirements import InvalidRequirement, Requirement

    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:  # of another package, which the run need not use
            continue
        if requirement.name == GROUP and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            return str(requirement.specifier)
    return ""


def version_conflict(plugin: Installed) -> str | None:
    """Return why the plugin does not fit this rlcore, or None when it does; from metadata only."""
    from packaging.specifiers import SpecifierSet

    from rlcore.version import __version__

    if SpecifierSet(plugin.requires_rlcore).contains(__version__, prereleases=True):
        return None
    return (
        f"plugin {plugin.name!r} ({plugin.owner}) needs rlcore {plugin.requires_rlcore}, this is rlcore "
        f"{__version__}; install a matching version of {plugin.distribution}"
    )
