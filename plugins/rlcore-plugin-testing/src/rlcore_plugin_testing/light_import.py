"""A plugin module imports only what is light, so that listing plugins stays fast. Importable without pytest."""

from __future__ import annotations

from collections.abc import Iterable

from rlcore.plugins.light_import import heavy_imports


def check_light_import(module: str, allow: Iterable[str] = ()) -> None:
    """Import `module` in a fresh interpreter and see that it pulls in nothing heavy.

    Light is the standard library, the module's own package, rlcore, pluggy and packaging; no other package is.

    Args:
        module: what the entry point names.
        allow: further top-level packages that may be imported.

    Raises:
        AssertionError: something heavy was imported, or the import failed; says where and what to change.
    """
    heavy = heavy_imports(module, allow)
    assert not heavy, (
        f"import {module} also imports\n  "
        + "\n  ".join(heavy)
        + "\nA plugin module is imported to list it, so it must be light: keep only provide_components there, name "
        'each component by import string ("package.module:Name"), and import heavy packages in that module.'
    )
