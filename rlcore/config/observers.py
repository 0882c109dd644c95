"""What a run shows and writes where its config does not say: a progress bar, and a table of its metrics."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, Final

from rlcore.config.core import OBSERVERS
from rlcore.config.raw import DEFAULT, RawConfig
from rlcore.errors import PluginError
from rlcore.plugins.discovery import installed
from rlcore.plugins.host import NO_PLUGINS, PluginHost

TABLE: Final = OBSERVERS["logger"]["use"]


def add_observers(raw: RawConfig, disable: Collection[str] = (), run: Mapping[str, Any] | None = None) -> None:
    """Add a `[[hook]]` and a `[[logger]]` to a config that says nothing of them, as the command line does.

    A section that is there stays as it is, an empty one (`hook = []`) too; so does the config of a run folder, which
    says everything.

    Args:
        raw: the config; changed in place.
        disable: plugins that must not be imported.
        run: the resolved config of the run that is resumed; None for a new run. A run goes on writing what it wrote.
    """
    if raw.of_a_run:
        return
    if "hook" not in raw.values:
        _add(raw, "hook")
    if "logger" not in raw.values:
        wanted = _writes_table(run) if run else _can_write_table({*disable, *_disabled(raw)})
        if wanted:
            _add(raw, "logger")


def leave_out_shown(raw: RawConfig, disable: Collection[str] = ()) -> None:
    """Take the hooks out of a config that only show how a run goes, as `--quiet` asks.

    Args:
        raw: the config; changed in place.
        disable: plugins that must not be imported.
    """
    host = PluginHost({*disable, *_disabled(raw)})
    raw.values["hook"] = [hook for hook in raw.values.get("hook", []) if not _only_shows(host, hook.get("use"))]


def _only_shows(host: PluginHost, use: Any) -> bool:
    """Return whether a hook only shows; of one that cannot be found, validating the config says so."""
    if not isinstance(use, str):
        return False
    try:
        host.load_for(use)
        return host.find("hook", use).component.shows
    except PluginError:
        return False


def _add(raw: RawConfig, section: str) -> None:
    raw.values[section] = [dict(OBSERVERS[section])]
    raw.sources |= {f"{section}.0.{key}": DEFAULT for key in OBSERVERS[section]}


def _writes_table(run: Mapping[str, Any]) -> bool:
    loggers = run.get("logger")
    return isinstance(loggers, list) and any(logger.get("use") == TABLE for logger in loggers)


def _can_write_table(disabled: Collection[str]) -> bool:
    plugin = TABLE.partition(":")[0]
    named = [entry for entry in installed() if entry.name == plugin]
    return len(named) == 1 and plugin not in disabled and not os.environ.get(NO_PLUGINS)


def _disabled(raw: RawConfig) -> list[str]:
    """Return what `[plugins] disable` says; what it should not say is refused later."""
    plugins = raw.values.get("plugins", {})
    names = plugins.get("disable", [])
    return [str(name) for name in names] if isinstance(names, list) else []
