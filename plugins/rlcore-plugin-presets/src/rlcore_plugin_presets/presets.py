"""Presets: texts of configs, with what each says about itself in its table `[preset]`, and which are installed.

They are TOML files in the packages that the entry points of one group name.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.resources import files
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError

from rlcore.config import explain
from rlcore.errors import MissingPluginError, PluginError, did_you_mean, nearest
from rlcore.plugins import Installed, Owner, distribution_of, installed
from rlcore_plugin_presets.published import distributions

GROUP: Final = "rlcore.presets"
SUFFIX: Final = ".toml"
TABLE: Final = "preset"


class Reached(BaseModel, extra="forbid"):
    """The returns of a measurement."""

    env: str = Field(description="id of the environment")
    frames: int = Field(gt=0, description="environment frames of training")
    returns: list[float] = Field(min_length=1, description="mean return of the last evaluation of each seed")

    def __str__(self) -> str:
        mean, count = statistics.fmean(self.returns), len(self.returns)
        seeds = "1 seed" if count == 1 else f"{count} seeds, {min(self.returns):,.1f} to {max(self.returns):,.1f}"
        return f"{self.env}: {mean:,.1f} after {self.frames:,} frames ({seeds})"


class About(BaseModel, extra="forbid"):
    """What a preset says about itself."""

    algorithm: str = Field(description="what `rlcore init` is called with; several presets may be of one algorithm")
    summary: str = Field(description="one line for listings")
    actions: Literal["any", "discrete", "continuous"] = Field("any", description="kind of the action space")
    envs: list[str] = Field(default_factory=list, description="ids it is for, as `Ant-*`; none: any environment")
    env_key: str = Field("id", description="key of `[env]` that says which environment it is")
    reached: list[Reached] = Field(default_factory=list, description="measured returns")


@dataclass(frozen=True)
class Preset:
    """A config that a plugin brings.

    Attributes:
        name: that of its file.
        text: TOML, with the table `[preset]`.
        owner: whose it is.
    """

    name: str
    text: str
    owner: Owner

    @cached_property
    def values(self) -> dict[str, Any]:
        """The parsed text.

        Raises:
            PluginError: it is not TOML.
        """
        try:
            return tomllib.loads(self.text)
        except ValueError as error:
            raise PluginError(f"{self}: not valid TOML: {error}") from None

    @cached_property
    def about(self) -> About:
        """What it says about itself.

        Raises:
            PluginError: its table `[preset]` is missing or wrong.
        """
        try:
            return About.model_validate(self.values.get(TABLE, {}))
        except ValidationError as error:
            raise PluginError("; ".join(explain(error, About, TABLE, str(self)))) from None

    @property
    def env_id(self) -> str | None:
        """The environment that its config names; None where its env takes no name."""
        env_id = self.values.get("env", {}).get(self.about.env_key)
        return None if env_id is None else str(env_id)

    @property
    def waits_for(self) -> list[str]:
        """The distributions of published plugins that its config names and that are not installed."""
        sections = [section if isinstance(section, list) else [section] for section in self.values.values()]
        tables = [table for section in sections for table in section if isinstance(table, dict)]
        uses = {str(table.get("use", "")).partition(":")[0] for table in tables}
        needed = {distribution for use in uses if (distribution := distribution_of(use)) is not None}
        return sorted(needed - {plugin.distribution for plugin in installed()})

    def is_for(self, env_id: str) -> bool:
        """Return whether it is for this environment among few."""
        name = env_id.rpartition(":")[2]
        # an id without a version, as the env will refuse it and name the newest, is for what any version is for
        return any(fnmatchcase(each, pattern) for each in (name, f"{name}-v") for pattern in self.about.envs)

    def __str__(self) -> str:
        return f"preset {self.name!r} ({self.owner})"


def presets() -> list[Preset]:
    """Return every installed preset in order of algorithm and name.

    Raises:
        PluginError: a package of presets cannot be imported, a preset says nothing about itself, or two have one name.
    """
    return _in_order(_by_name().values())


def _in_order(presets: Iterable[Preset]) -> list[Preset]:
    return sorted(presets, key=lambda preset: (preset.about.algorithm, preset.name))


def _by_name() -> dict[str, Preset]:
    presets: dict[str, Preset] = {}
    for entry in installed(GROUP):
        for preset in of_package(entry):
            other = presets.setdefault(preset.name, preset)
            if other is not preset:
                raise PluginError(
                    f"preset {preset.name!r} is in {other.owner} and in {preset.owner}; uninstall one of them"
                )
    return presets


def presets_of(distribution: str) -> list[Preset]:
    """Return the presets that a distribution brings, in order of name.

    Raises:
        PluginError: its package of presets cannot be imported.
    """
    entries = [entry for entry in installed(GROUP) if entry.distribution == distribution]
    return sorted((preset for entry in entries for preset in of_package(entry)), key=lambda preset: preset.name)


def of_package(entry: Installed) -> Iterator[Preset]:
    """Yield the presets of one package.

    Raises:
        PluginError: it is for another rlcore, or cannot be imported.
    """
    for file in files(entry.load("presets")).iterdir():
        if file.name.endswith(SUFFIX):
            yield Preset(file.name.removesuffix(SUFFIX), file.read_text(encoding="utf-8"), entry.owner)


def named(name: str) -> list[Preset]:
    """Return the preset of a name, or all of an algorithm.

    Raises:
        PluginError: there is none; says how to install it, or what is like it.
    """
    by_name = _by_name()
    if name in by_name:  # the others are not parsed for it
        return [by_name[name]]
    everything = _in_order(by_name.values())
    of_algorithm = [preset for preset in everything if preset.about.algorithm == name]
    if of_algorithm:
        return of_algorithm
    published = distributions()
    if name in published:
        package = published[name]
        raise MissingPluginError(
            f"preset {name!r} is provided by {package}, which is not installed: pip install {package}"
        )
    algorithms = {preset.about.algorithm for preset in everything}
    candidates = {*algorithms, *published, *by_name}
    guess = did_you_mean(name, candidates) if nearest(name, candidates) else f"; known: {', '.join(sorted(algorithms))}"
    raise PluginError(f"there is no preset {name!r}{guess}; rlcore init --list shows all")
