"""Places that things are pushed to and pulled from, by their address."""

from __future__ import annotations

from rlcore.errors import ConfigError
from rlcore_plugin_share.places.base import Place


def place_of(address: str, private: bool = False) -> Place:
    """Return the place of an address: a folder, unless it has a scheme.

    Args:
        address: of the place.
        private: whether a repository of the hub that is made is seen by its owner alone.

    Raises:
        ConfigError: nothing can be there, or it is private and no repository of the hub.
        MissingPluginError: the library or driver of its scheme is not installed.
    """
    scheme, separator, _ = address.partition("://")
    if private and scheme != "hf":
        raise ConfigError(f"--private is for a repository of the hub, hf://USER/NAME, and not for {address!r}")
    if not separator:
        from rlcore_plugin_share.places.folder import Folder

        return Folder(address)
    if scheme == "hf":
        from rlcore_plugin_share.places.hub import Hub

        return Hub(address, private)
    if scheme in ("http", "https"):
        from rlcore_plugin_share.places.web import Web

        return Web(address)
    from rlcore_plugin_share.places.fsspec_place import FsspecPlace

    return FsspecPlace(address)
