"""`rlcore plugins doctor`: what is wrong with the installed plugins, each with the fix."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rlcore_plugin_presets.fitting import check
from rlcore_plugin_presets.presets import presets_of

from rlcore.cli import Answer, add_json
from rlcore.errors import PluginError, RlcoreError
from rlcore.plugins.discovery import Installed, installed, version_conflict
from rlcore.plugins.host import PluginHost
from rlcore.plugins.registry import Registry
from rlcore_plugin_testing.light_import import Imported, import_alone

SLOW_SECONDS: Final = 0.3

# what is there before any plugin is imported, and counts for none
_FIRST: Final = ("rlcore.hooks.specs", "rlcore.plugins.component")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        plugin: whose it is.
        problem: what is wrong.
        fix: what to do.
    """

    plugin: str
    problem: str
    fix: str


@dataclass(frozen=True)
class Examined:
    """What is wrong with the installed plugins.

    Attributes:
        plugins: how many there are.
        findings: none where all is well.
    """

    plugins: int
    findings: list[Finding]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments but `--json`, since it looks at all that is installed."""
    parser.description = "Find conflicts, broken and slow plugins, each with the fix."
    add_json(parser, Examined)


def run(options: argparse.Namespace) -> Answer:
    """Answer with every finding; the exit code is 2 when there is one."""
    plugins = installed()
    findings = list(examine(plugins))
    lines = [f"{finding.plugin}: {finding.problem}\n  fix: {finding.fix}" for finding in findings]
    lines += [f"{len(plugins)} plugins, {f'{len(findings)} findings' if findings else 'all is well'}"]
    return Answer(Examined(len(plugins), findings), "\n".join(lines) + "\n", 2 if findings else 0)


def examine(plugins: list[Installed]) -> Iterator[Finding]:
    """Yield what is wrong with each plugin, and between them."""
    for name, count in Counter(plugin.name for plugin in plugins).items():
        if count > 1:
            owners = [plugin.distribution for plugin in plugins if plugin.name == name]
            fix = f"pip uninstall one of {', '.join(owners)}"
            yield Finding(name, f"the name is claimed by {count} distributions", fix)
    fitting = []
    for plugin in plugins:
        conflict = version_conflict(plugin)
        if conflict:
            yield Finding(plugin.name, conflict, f"pip install --upgrade {plugin.distribution} rlcore")
        else:
            fitting.append(plugin)
    importable = []
    for plugin, imported in zip(fitting, import_alone(map(_module, fitting), first=_FIRST), strict=True):
        yield from _wrong_with_import(plugin, imported)
        if not imported.error:  # what ends the process that imports it would end this one too
            importable.append(plugin)
    yield from _shared_names(importable)
    yield from presets_that_do_not_fit(plugins)


def presets_that_do_not_fit(plugins: list[Installed]) -> Iterator[Finding]:
    """Yield the presets that are no config here; one that waits for another plugin is left out."""
    owners: dict[str, list[str]] = defaultdict(list)
    for distribution in sorted({plugin.distribution for plugin in plugins}):
        try:
            for preset in presets_of(distribution):
                owners[preset.name].append(distribution)
                if not preset.waits_for:
                    check(preset)
        except RlcoreError as error:
            fix = f"a defect of {distribution}, or of an old version of it: pip install --upgrade {distribution}"
            yield Finding(distribution, f"its presets cannot be used: {error}", fix)
    for name, several in owners.items():
        if len(several) > 1:
            both = " and ".join(several)
            yield Finding("presets", f"preset {name!r} is in {both}", f"pip uninstall one of {', '.join(several)}")


def _module(plugin: Installed) -> str:
    return plugin.module.partition(":")[0]


def _wrong_with_import(plugin: Installed, imported: Imported) -> Iterator[Finding]:
    """Does it work, how long does it take, what does it pull in?"""
    module = _module(plugin)
    if imported.error:
        fix = f"pip install --upgrade {plugin.distribution}"
        yield Finding(plugin.name, f"importing {module} fails: {imported.error}", fix)
    elif imported.heavy:
        fix = f"a defect of {plugin.distribution}: name components by import string, and import heavy packages there"
        yield Finding(plugin.name, f"import {module} also imports {', '.join(imported.heavy)}", fix)
    elif imported.seconds > SLOW_SECONDS:
        yield Finding(
            plugin.name, f"importing {module} takes {imported.seconds:.1f} s", "a defect of its plugin module"
        )


def _shared_names(plugins: list[Installed]) -> Iterator[Finding]:
    """Yield the components that several plugins provide, so that a config must say which."""
    registry = Registry()
    for name in sorted({plugin.name for plugin in plugins}):
        host = PluginHost()
        try:
            host.load(name)
        except PluginError:  # found above
            continue
        registry.provided += [provided for provided in host.registry.provided if provided.owner.plugin == name]
    counted = Counter((entry.component.kind, entry.component.name) for entry in registry.provided)
    for (kind, name), count in counted.items():
        if count > 1:
            owners = [entry.owner.plugin for entry in registry.provided if entry.component.name == name]
            choices = " or ".join(f"use = '{owner}:{name}'" for owner in owners)
            yield Finding(", ".join(owners), f"{count} plugins provide {kind} {name!r}", f"in a config, say {choices}")
