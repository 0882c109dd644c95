"""What a plugin module must keep: light to import, and what it provides can be imported and named."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from pydantic import BaseModel
from rlcore_plugin_presets.fitting import check
from rlcore_plugin_presets.presets import presets_of

from rlcore.plugins.discovery import Installed, installed, version_conflict
from rlcore.plugins.host import PluginHost
from rlcore.plugins.registry import Provided
from rlcore_plugin_testing.light_import import check_light_import


class PluginContract:
    """Base of the tests of a plugin as a whole.

    Attributes:
        plugin: its entry-point name.
    """

    plugin: ClassVar[str] = ""

    def entry_point(self) -> Installed:
        """Return what the metadata say of the plugin."""
        claimed = [entry for entry in installed() if entry.name == self.plugin]
        names = ", ".join(entry.name for entry in installed())
        assert len(claimed) == 1, (
            f"{len(claimed)} installed entry points of the group 'rlcore' are called {self.plugin!r} (there are: "
            f"{names}); "
            'write [project.entry-points.rlcore] into pyproject.toml with `NAME = "package"`, and install again'
        )
        return claimed[0]

    def components(self) -> list[Provided]:
        """Return what the plugin provides."""
        host = PluginHost()
        host.load(self.plugin)
        return [provided for provided in host.registry.provided if provided.owner.plugin == self.plugin]

    def test_is_found_by_its_entry_point(self) -> None:
        """A config finds the plugin by metadata alone."""
        self.entry_point()

    def test_import_is_light(self) -> None:
        """Naming a plugin must not load what its components need."""
        check_light_import(self.entry_point().module)

    def test_fits_this_rlcore(self) -> None:
        """The range of `Requires-Dist: rlcore` is the promise that is checked before the import."""
        plugin = self.entry_point()
        conflict = version_conflict(plugin)
        assert conflict is None, conflict
        assert plugin.requires_rlcore or plugin.distribution == "rlcore", (
            f'{plugin.distribution} does not say which rlcore it needs: add "rlcore>=X.Y,<Z" to its dependencies'
        )

    def test_provides_each_component_once(self) -> None:
        """Two components of one kind and name could not be told apart."""
        found = self.components()
        assert found, f"plugin {self.plugin!r} provides nothing; return components from provide_components"
        counts = Counter((provided.component.kind, provided.component.name) for provided in found)
        double = [f"{kind} {name!r}" for (kind, name), count in counts.items() if count > 1]
        assert not double, f"plugin {self.plugin!r} provides these more than once: {', '.join(double)}"

    def test_every_component_can_be_imported(self) -> None:
        """The import strings lead to a callable and to a schema."""
        for provided in self.components():
            assert callable(provided.target())
            schema: object = provided.schema()
            is_model = isinstance(schema, type) and issubclass(schema, BaseModel)
            assert is_model, f"{provided}: its Config is no pydantic model"

    def test_every_component_has_a_summary(self) -> None:
        """`rlcore plugins show` prints it."""
        bare = [str(provided) for provided in self.components() if not provided.component.summary]
        assert not bare, f"give these a one-line summary: {', '.join(bare)}"

    def test_every_component_has_a_docstring(self) -> None:
        """The reference is made from the docstrings."""
        bare = [str(provided) for provided in self.components() if not provided.target().__doc__]
        assert not bare, f"give these a docstring: {', '.join(bare)}"

    def test_every_preset_is_a_config(self) -> None:
        """The presets of the distribution say what they are for, and fit the components that they name."""
        for preset in presets_of(self.entry_point().distribution):
            check(preset)
