"""Values that the sections of several parts have: intervals and secrets."""

from __future__ import annotations

import os
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from rlcore.errors import ConfigError
from rlcore.types.progress import CLOCKS, Every

# for `json_schema_extra` of a field: a resume may change it, since it changes no result
FREE_AT_RESUME: Final[dict[str, Any]] = {"free_at_resume": True}


class SectionKeys:
    """What the schema of a section may have besides its keys.

    Attributes:
        discounts: whether its key `gamma` counts; the discounts of a config that count have to agree.
    """

    discounts: bool = True


def done_by(plugin: str) -> dict[str, Any]:
    """Return, for `json_schema_extra` of a field, the plugin that a config with this field set to true needs."""
    return {"plugin": plugin}


def _checked_interval(value: Any) -> Any:
    counts = value.values() if isinstance(value, dict) else [value]
    if any(isinstance(count, bool) or not isinstance(count, int) for count in counts):
        raise ValueError("an interval is a number of frames, or names another clock: { updates = 500 }")
    try:
        Every(value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return value


_COUNT: Final = {"type": "integer", "minimum": 1}
_CLOCKED: Final = {"properties": dict.fromkeys(CLOCKS, _COUNT), "additionalProperties": False}
_AS_JSON: Final = {"anyOf": [_COUNT, {"type": "object", **_CLOCKED, "minProperties": 1, "maxProperties": 1}]}
Interval = Annotated[int | dict[str, int], BeforeValidator(_checked_interval), WithJsonSchema(_AS_JSON)]


class Secret(BaseModel, extra="forbid"):
    """A value that the config only refers to: `{ env = "NAME" }`. It stays a reference in everything written."""

    env: str = Field(description="environment variable that holds the value")

    def reveal(self) -> str:
        """Return the value.

        Raises:
            ConfigError: the environment variable is not set.
        """
        try:
            return os.environ[self.env]
        except KeyError:
            raise ConfigError(f"environment variable {self.env!r}, which the config refers to, is not set") from None
