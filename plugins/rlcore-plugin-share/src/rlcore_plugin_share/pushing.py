"""A push: what is at hand, its page and proof, and the manifest, to a place."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlcore import __version__
from rlcore.errors import ConfigError, RlcoreError, StorageError, describe
from rlcore_plugin_share.manifest import Manifest, shown
from rlcore_plugin_share.page import write_beside
from rlcore_plugin_share.places import place_of
from rlcore_plugin_share.source import Source, source_of

# of the places with secrets that a message names
_MOST_SHOWN: Final = 10


@dataclass(frozen=True)
class Pushed:
    """What a push did.

    Attributes:
        manifest: of all that is there now.
        new: the files that were not there before.
        left: a line about each file that stayed behind.
    """

    manifest: Manifest
    new: list[str]
    left: list[str]


def push(
    path: Path,
    address: str,
    at_checkpoint: bool = False,
    overwrite: bool = False,
    with_secrets: bool = False,
    private: bool = False,
) -> Pushed:
    """Push a run, an exported policy or a dataset.

    Args:
        path: of its folder or file.
        address: of the place to push it to.
        at_checkpoint: of a run: its config and its latest checkpoint alone.
        overwrite: whether another push may be replaced there.
        with_secrets: whether files with what looks like a secret are pushed.
        private: whether a repository of the hub that is made for it is seen by its owner alone.

    Raises:
        ConfigError: it cannot be pushed, or something else is there.
        StorageError: a file cannot be read, or the place does not take it.
    """
    source = source_of(path, at_checkpoint)
    if path.is_dir():
        _check_apart(source.folder, address)
    place = place_of(address, private)
    with tempfile.TemporaryDirectory(prefix="rlcore-push-") as beside:
        write_beside(source, address, Path(beside), not at_checkpoint)
        entries = source.entries()
        if source.leaks and not with_secrets:
            raise _leaking(source)
        manifest = Manifest(source.kind.name, source.name[:100], __version__, entries)
        try:
            new = place.publish(manifest, source.files, overwrite)
        except RlcoreError:
            raise
        except Exception as error:  # of a driver, a library or the network
            raise StorageError(
                f"{address} does not take the push: {shown(describe(error))}; run it again, and it goes on from there"
            ) from error
    return Pushed(manifest, new, source.left)


def _check_apart(folder: Path, address: str) -> None:
    target = None if "://" in address else Path(address).resolve()
    if target is not None and target.is_relative_to(folder.resolve()):
        raise ConfigError(f"{address!r} lies in {str(folder)!r}, which is to be pushed: name a place outside of it")


def _leaking(source: Source) -> ConfigError:
    some = "\n".join(f"  {line}" for line in source.leaks[:_MOST_SHOWN])
    more = f"\n  and {len(source.leaks) - _MOST_SHOWN} more" if len(source.leaks) > _MOST_SHOWN else ""
    return ConfigError(
        f"nothing was pushed, as what looks like a secret would go with {str(source.folder)!r}:\n{some}{more}\n"
        'take it out of these files, with { env = "NAME" } in its place in a config; or say --with-secrets'
    )
