"""Everything that the imported plugins provide, found by kind and name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from rlcore.errors import (
    FROM_OUTSIDE,
    EnvError,
    NotProvidedError,
    PluginError,
    RlcoreError,
    describe,
    did_you_mean,
    note,
)
from rlcore.plugins.catalogue import PUBLISHED
from rlcore.plugins.component import Component

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rlcore.types.context import Context


@dataclass(frozen=True)
class Owner:
    """Whose a component is."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


@dataclass(frozen=True)
class Provided:
    """A component together with its owner.

    Attributes:
        part: of a library, where `use` names one and the component takes it; else empty.
    """

    component: Component
    owner: Owner
    part: str = ""

    def __str__(self) -> str:
        return f"{self.component.kind} {self.component.name!r} ({self.owner})"

    @property
    def plugin(self) -> str:
        """The plugin as configs name it."""
        plugin = PUBLISHED.get(self.owner.plugin)
        return "core" if plugin is not None and plugin.of_core else self.owner.plugin

    @property
    def use(self) -> str:
        """What `use` says in a config that names the plugin too."""
        return f"{self.component.name if self.part else self.plugin}:{self.part or self.component.name}"

    def target(self) -> Callable[..., Any]:
        """Import and return what builds the component.

        Raises:
            PluginError: the import fails; names the component and its owner.
        """
        target: Callable[..., Any] = self._import(self.component.target)
        if not callable(target):
            raise PluginError(f"{self}: its target {self.component.target!r} is not callable")
        return target

    def schema(self) -> type[BaseModel]:
        """Import and return the schema of the component's config section; without one it takes no keys."""
        from pydantic import create_model  # listing plugins does without these

        from rlcore.types.part import Part, with_defaults

        schema: Any = self._import(self.component.config)
        if schema is None:
            schema = with_defaults(self.target(), Part).Config or create_model("Keys", __config__={"extra": "forbid"})
        if self.part:
            part: Any = {self.component.part_key: (Literal[self.part], self.part)}
            schema = create_model(schema.__name__, __base__=schema, **part)
        return schema  # type: ignore[no-any-return]

    def build(self, config: BaseModel, context: Context) -> Any:
        """Return the built component; an error keeps its type and says whose component it was."""
        target = self.target()
        try:
            return target(config, context)
        except RlcoreError:
            raise
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # the call itself failed
                raise PluginError(
                    f"{self} cannot be built: {error}; a component is called with (config, context)"
                ) from error
            note(error, f"raised while building {self}")
            raise
        except FROM_OUTSIDE:
            raise
        except (SystemExit, GeneratorExit) as error:
            if self.component.kind == "logger":  # whoever opens loggers goes on without one that cannot be built
                raise
            kind = EnvError if self.component.kind == "env" else PluginError
            raise kind(f"{self} raised {describe(error)} while it was built; a component cannot exit") from error
        except BaseException as error:
            note(error, f"raised while building {self}")
            raise

    def _import(self, place: Any) -> Any:
        if not isinstance(place, str):
            return place
        module_name, _, attribute = place.partition(":")
        try:
            value: Any = importlib.import_module(module_name)
            for part in attribute.split("."):
                value = getattr(value, part)  # the record of a component says where it is by name
        except FROM_OUTSIDE:
            raise
        except BaseException as error:
            raise PluginError(f"{self}: importing {place!r} failed: {describe(error)}") from error
        return value


@dataclass
class Registry:
    """Everything that the imported plugins provide."""

    provided: list[Provided] = field(default_factory=list)

    def add(self, components: Iterable[Component], owner: Owner) -> None:
        """Register what a plugin provides."""
        self.provided += [Provided(component, owner) for component in components]

    def of_kind(self, kind: str) -> list[Provided]:
        """Return the components of one kind."""
        return [entry for entry in self.provided if entry.component.kind == kind]

    def find(self, kind: str, use: str) -> Provided:
        """Return the component that `use` names: `"name"`, or `"plugin:name"` to pick a provider or a part of one.

        Raises:
            NotProvidedError: nothing of that name.
            PluginError: several providers of it.
        """
        plugin, _, name = use.rpartition(":")
        of_kind = self.of_kind(kind)
        named = [
            entry
            for entry in of_kind
            if entry.component.name == name and plugin in ("", entry.plugin, entry.owner.plugin)
        ]
        if not named:
            for entry in of_kind:
                if entry.component.part_key and plugin == entry.component.name:
                    return replace(entry, part=name)
            names = sorted({entry.component.name for entry in of_kind})
            listing = f"; known here: {', '.join(names)}" if names else ""
            raise NotProvidedError(f"unknown {kind} {use!r}{did_you_mean(name, names)}{listing}")
        if len(named) > 1:
            owners = ", ".join(f"{entry.owner} (use = {entry.use!r})" for entry in named)
            raise PluginError(f"{kind} {name!r} is provided by several plugins: {owners}; say which one")
        return named[0]
