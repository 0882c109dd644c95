"""Places that things are pushed to and pulled from, by their address."""

from __future__ import annotations

from rlcore_plugin_share.places.base import Place


def place_of(address: str) -> Place:
    """Return the place of an address: a folder, unless it has a scheme.

    Raises:
        ConfigError: nothing can be there.
        MissingPluginError: the library or driver of its scheme is not installed.
    """
    scheme, separator, _ = address.partition("://")
    if not separator:
        from rlcore_plugin_share.places.folder import Folder

        return Folder(address)
    if scheme == "hf":
        from rlcore_plugin_share.places.hub import Hub

        return Hub(address)
    if scheme in ("http", "https"):
        from rlcore_plugin_share.places.web import Web

        return Web(address)
    from rlcore_plugin_share.places.fsspec_place import FsspecPlace

    return FsspecPlace(address)
