"""The Hugging Face hub: `hf://USER/NAME`, and `hf://datasets/USER/NAME` for a dataset."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final

from rlcore.errors import ConfigError, MissingPluginError
from rlcore_plugin_share.kinds import PAGE
from rlcore_plugin_share.manifest import MANIFEST, Manifest
from rlcore_plugin_share.places.base import Place, checked

SCHEME: Final = "hf://"
_DATASETS: Final = "datasets/"
# the hub has it in every repository
_OF_THE_HUB: Final = ".gitattributes"


class Hub(Place):
    """A repository of the hub, to which a push is one commit: what was uploaded before one that failed is not again.

    Args:
        address: `hf://USER/NAME` or `hf://datasets/USER/NAME`.
        private: whether a repository that is made is seen by its owner alone; else it is as the hub makes one.
    """

    def __init__(self, address: str, private: bool = False) -> None:
        super().__init__(address)
        self._private = private
        try:
            from huggingface_hub import HfApi, HfFileSystem
        except ImportError:
            raise MissingPluginError(
                f"{SCHEME} needs huggingface_hub, which is not installed: pip install 'rlcore-plugin-share[hub]'"
            ) from None
        name = address.removeprefix(SCHEME).strip("/")
        self._type = "dataset" if name.startswith(_DATASETS) else "model"
        self._name = name.removeprefix(_DATASETS)
        if self._name.count("/") != 1 or not all(self._name.split("/")):
            raise ConfigError(f"{address!r}: name a repository, {SCHEME}USER/NAME or {SCHEME}{_DATASETS}USER/NAME")
        for client in ("httpx", "httpx2"):  # which tell of every request
            logging.getLogger(client).setLevel(logging.WARNING)
        self._api = HfApi()
        self._files = HfFileSystem()

    @cached_property
    def _revision(self) -> str:
        """The commit that is pulled, so that the manifest and the files are of one."""
        from huggingface_hub.errors import RepositoryNotFoundError

        try:
            return str(self._api.repo_info(self._name, repo_type=self._type).sha)
        except RepositoryNotFoundError:
            raise ConfigError(f"there is no repository {self.address}, or it is private: hf auth login") from None

    @contextmanager
    def open(self, name: str, begin: int = 0) -> Iterator[BinaryIO]:
        """Open a file of the commit."""
        prefix = _DATASETS if self._type == "dataset" else ""
        with self._files.open(f"{prefix}{self._name}@{self._revision}/{name}", "rb") as stream:
            if begin:
                stream.seek(begin)
            yield stream

    def publish(self, manifest: Manifest, sources: Mapping[str, Path], overwrite: bool) -> list[str]:
        """Commit the files of a manifest and the manifest, and remove what it does not list."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        wanted = "dataset" if manifest.kind == "dataset" else "model"
        if wanted != self._type:
            raise ConfigError(f"{self.address}: a {manifest.kind} is pushed to a repository of the type {wanted}")
        self._api.create_repo(self._name, repo_type=self._type, private=self._private or None, exist_ok=True)
        there = {file.path for file in self._api.list_repo_tree(self._name, repo_type=self._type, recursive=True)} - {
            _OF_THE_HUB
        }
        published = self.manifest() if MANIFEST in there else None
        if published == manifest:
            return []
        if published is not None:
            self._check_replaceable(published, overwrite)
        if published is None and there - {PAGE}:
            raise ConfigError(f"{self.address} holds {min(there - {PAGE})!r}, which was not pushed; name another one")
        earlier = {} if published is None else published.files
        new = [name for name, entry in sorted(manifest.files.items()) if earlier.get(name) != entry]
        for name in new:
            for _ in checked(sources[name], name, manifest.files[name]):
                pass
        operations: list[Any] = [CommitOperationAdd(name, sources[name]) for name in new]
        operations.append(CommitOperationAdd(MANIFEST, manifest.render()))
        operations += [CommitOperationDelete(name) for name in sorted(earlier.keys() - manifest.files.keys())]
        self._api.create_commit(
            self._name, operations, commit_message=f"The {manifest.kind} {manifest.name}", repo_type=self._type
        )
        return new
