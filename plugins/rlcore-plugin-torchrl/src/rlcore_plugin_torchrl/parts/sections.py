"""The base of the sections that name a part of TorchRL: its keyword arguments are further keys of the section."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, Field, model_validator

from rlcore.errors import ConfigError, MissingPluginError
from rlcore_plugin_torchrl.parts.library import part_class
from rlcore_plugin_torchrl.parts.signatures import checked_keywords, keywords_of


class PartConfig(BaseModel, extra="allow"):
    """A part of TorchRL by name; further keys are its keyword arguments, held against its signature.

    Attributes:
        kind_of_part: a kind of `library.py`.
        provided: arguments that rlcore gives the part, by name; what to say where a config gives them too.
    """

    kind_of_part: ClassVar[str] = ""
    provided: ClassVar[Mapping[str, str]] = {}

    part: str = Field(description="class of TorchRL; further keys are its keyword arguments")

    def __iter__(self) -> Iterator[tuple[str, Any]]:  # type: ignore[override]  # as that of pydantic is annotated
        """Yield the keys of the schema with their values; keyword arguments of the part have no field."""
        yield from ((name, value) for name, value in super().__iter__() if name in type(self).model_fields)

    @property
    def part_class(self) -> type:
        """The class that `part` names."""
        return part_class(self.kind_of_part, self.part, "part")

    @property
    def keywords(self) -> dict[str, Any]:
        """The keyword arguments of the part, as the config says them."""
        return dict(self.model_extra or {})

    def arguments(self, key: str = "") -> dict[str, Any]:
        """Return the keyword arguments of the part.

        Raises:
            ConfigError: one of them does not fit its signature.
        """
        return checked_keywords(self.part_class, self.keywords, key, self.given_by_rlcore(), self.provided)

    def given_by_rlcore(self) -> Iterable[str]:
        """Return the names of the arguments that the config need not say."""
        return self.provided

    @model_validator(mode="after")
    def _fits_its_signature(self) -> PartConfig:
        try:
            self.arguments()
        except (ConfigError, MissingPluginError) as error:
            raise ValueError(str(error).strip()) from error
        return self


def built(kind: str, table: Any, key: str, provided: Mapping[str, Any] | None = None) -> Any:
    """Return a part of TorchRL that a table `{ part = "NAME", ... }` describes.

    Args:
        kind: a kind of `library.py`.
        table: of the config; its further keys are keyword arguments.
        key: where the config has it, for messages.
        provided: arguments that rlcore gives the part where its signature has them and the table does not.

    Raises:
        ConfigError: the table does not fit, or TorchRL refuses its values.
    """
    part, arguments = checked_table(kind, table, key, provided or {})
    return called(part, arguments, key)


def checked_table(kind: str, table: Any, key: str, provided: Mapping[str, Any]) -> tuple[type, dict[str, Any]]:
    """Return the class that a table names, and its keyword arguments.

    Raises:
        ConfigError: it names no class, or an argument does not fit.
    """
    if not isinstance(table, Mapping) or not isinstance(table.get("part"), str):
        raise ConfigError(f'{key}: expected a table such as {{ part = "NAME" }}; found {table!r}')
    part = part_class(kind, table["part"], f"{key}.part")
    values = {name: value for name, value in table.items() if name != "part"}
    arguments = checked_keywords(part, values, key, provided)
    taken = keywords_of(part).parameters
    return part, {**{name: value for name, value in provided.items() if name in taken}, **arguments}


def called(part: type, arguments: Mapping[str, Any], key: str) -> Any:
    """Return an object of a class of TorchRL.

    Raises:
        ConfigError: the class refuses the values, or a package is missing that it wraps.
    """
    try:
        return part(**arguments)
    except ImportError as error:
        raise MissingPluginError(
            f"{key}: {part.__name__} of TorchRL needs a package that is missing: {error}"
        ) from error
    except Exception as error:  # of TorchRL, or of the library that it wraps
        raise ConfigError(f"{key}: {part.__name__} of TorchRL refuses this: {type(error).__name__}: {error}") from error
