"""A preset: the text of a config, and what it says about itself in its table `[preset]`."""

from __future__ import annotations

import statistics
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError

from rlcore.config.validation import explain
from rlcore.errors import PluginError
from rlcore.plugins.catalogue import PREFIX, PUBLISHED
from rlcore.plugins.component import COMPONENT_SECTIONS
from rlcore.plugins.discovery import installed
from rlcore.plugins.known import component_names
from rlcore.plugins.registry import Owner

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
        sections = [self.values.get(section, []) for section in COMPONENT_SECTIONS]
        tables = [table for section in sections for table in (section if isinstance(section, list) else [section])]
        uses = [str(table.get("use", "")).partition(":")[0] for table in tables]
        plugins = {component_names().get(use, use) for use in uses} & {*PUBLISHED}
        return sorted(PREFIX + plugin for plugin in plugins - {plugin.name for plugin in installed()})

    def is_for(self, env_id: str) -> bool:
        """Return whether it is for this environment among few."""
        return any(fnmatchcase(env_id.rpartition(":")[2], pattern) for pattern in self.about.envs)

    def __str__(self) -> str:
        return f"preset {self.name!r} ({self.owner})"
