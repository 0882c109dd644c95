"""Code that a config names: whether it may run here, and the one way in which it is loaded.

It runs with the rights of the user, so it must be the user's: this machine wrote the config, the user trusts config and
code as they are, or config and code are files of the user outside of any run folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any, Final

from rlcore.config.own_modules import folders_of, make_importable, named_modules, places_in
from rlcore.config.raw import ConfigFile, RawConfig, text_of
from rlcore.errors import ConfigError
from rlcore.plugins.component import COMPONENT_SECTIONS
from rlcore.plugins.host import PluginHost

log = logging.getLogger(__name__)

# names the folder of the list of what is trusted, in the place of the one that the platform has for settings
CONFIG_HOME: Final = "RLCORE_CONFIG_HOME"
# files of code that are hashed; what has more is asked about each time
_MOST_FILES: Final = 20_000
_SUFFIXES: Final = tuple(all_suffixes())
# what could not be written into the list, for the rest of this process
_unwritten: set[str] = set()


class UntrustedError(ConfigError):
    """Code that may not run here."""


class OwnCode:
    """The code that a config names: loose files, and folders that modules are imported from.

    Args:
        raw: the config.

    Attributes:
        files: the loose files.
        folders: the modules of the config are imported from them.
    """

    def __init__(self, raw: RawConfig) -> None:
        self._raw = raw
        self.files = [raw.base / name for name in _names(raw, "files")]
        self.folders = folders_of(raw, _names(raw, "path"))

    def find_modules(self, sections: Container[str] = COMPONENT_SECTIONS) -> list[str]:
        """Put the folders on the path, for the modules that some sections name.

        Returns:
            A problem for each folder that is none, and for each module that is hidden.

        Raises:
            UntrustedError: the code may not run here.
        """
        self._check()
        values = {name: value for name, value in self._raw.values.items() if name in sections}
        return make_importable(replace(self._raw, values=values), self.folders)

    def load(self, host: PluginHost, file: Path) -> None:
        """Import a loose file as a plugin.

        Raises:
            UntrustedError: it may not run here.
            PluginError: it is missing or broken.
        """
        self._check()
        host.load_file(file)

    def _check(self) -> None:
        """Refuse code that may not run here; what somebody said to trust is noted.

        Raises:
            UntrustedError: says which file names it, and how to trust it.
        """
        raw = self._raw
        refused = next(((file, why) for file in raw.files if (why := self._why_not(file))), None)
        if refused is None:
            raw.trusted = True  # it may be sent to hosts that have not written it
            return
        content = self._content()
        if raw.trusted:
            note(content, str(raw.path))
        elif not is_noted(content):
            file, why = refused
            raise UntrustedError(
                f"{str(file.path)!r} {why}, and the code that it names would run with your rights "
                f"({', '.join(self._named(file))}): look at both, then say --trust (trust=True in Python), which holds "
                "until one of them changes"
            )
        # caches of bytecode beside the code are part of what is trusted, so none may be added
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

    def _why_not(self, file: ConfigFile) -> str:
        """Return why the code that a file of the config names may not run without being trusted; empty where it may."""
        inside = list(self._inside(file.folder))
        if not inside and not names_code(json.loads(file.text)):
            return ""
        if file.of_a_run:
            return "" if not inside and is_noted(_of_text(file.text)) else "was not written by rlcore on this machine"
        places = (file.path, *self.files, *self.folders, *inside)
        foreign = next((owner for place in places if (owner := _other_owner(place))), "")
        return f"or code that it names belongs to {foreign}, not to you" if foreign else ""

    def _inside(self, folder: Path) -> Iterator[Path]:
        """Yield the code that lies in a folder."""
        yield from (place for place in (*self.files, *self.folders) if place.resolve().is_relative_to(folder))
        for name in named_modules(self._raw):
            top = name.partition(".")[0]
            # without an `__init__.py`, or compiled, it would be found in the working directory
            yield from (place for place in (folder / top, *folder.glob(f"{top}.*")) if place.exists())

    def _named(self, file: ConfigFile) -> list[str]:
        """Return the names of the code of a file, for messages."""
        inside = (str(place) for place in self._inside(file.folder))
        return list(dict.fromkeys([*names_code(json.loads(file.text)), *inside]))

    def _content(self) -> str:
        """Return the hash of the files of the config and of the code that they name; empty where that is too much."""
        digest = hashlib.sha256(b"code")
        for file in self._raw.files:
            digest.update(hashlib.sha256(file.text.encode()).digest())
        inside = (place for file in self._raw.files for place in self._inside(file.folder))
        for number, content in enumerate(_code_files(dict.fromkeys([*self.files, *self.folders, *inside]))):
            if number == _MOST_FILES:
                return ""
            digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()


def names_code(values: Mapping[str, Any]) -> list[str]:
    """Return the keys of a config that name code: what is imported from places that it names, and what is called.

    An installed module of an id, such as `"minigrid:MiniGrid-Empty-5x5-v0"`, is imported as a plugin is.
    """
    plugins = values.get("plugins")
    keys = [f"[plugins] {key}" for key in ("files", "path") if isinstance(plugins, Mapping) and plugins.get(key)]
    called = (key for key, text in places_in(values) if text.partition(":")[2].replace(".", "").isidentifier())
    return [*keys, *dict.fromkeys(called)]


def note_written(values: Mapping[str, Any], what: Path) -> None:
    """Note that this machine wrote a config with absolute paths, so that the code which it names may run."""
    if names_code(values):
        note(_of_text(text_of(values)), str(what))


def check_file(file: Path, trusted: bool) -> None:
    """Refuse a file that is code itself, unless this machine wrote it.

    Raises:
        UntrustedError: it was not written here, and nobody said to trust it.
    """
    digest = hash_of(file)
    if trusted:
        note(digest, str(file))
    elif not is_noted(digest):
        raise UntrustedError(
            f"{str(file)!r} was not written by rlcore on this machine, and reading it may run code with your rights: "
            "where you trust it, say trust=True (rlcore.load_agent) or --trust, which holds until it changes"
        )


def note_file(file: Path) -> None:
    """Note that this machine wrote a file that is code itself, so that it may be read."""
    note(hash_of(file), str(file))


def hash_of(file: Path) -> str:
    """Return the hash of a file that is code."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_noted(digest: str) -> bool:
    """Return whether something with this hash is trusted."""
    try:
        return bool(digest) and (digest in _unwritten or (_list() / digest).is_file())
    except (OSError, RuntimeError):  # there is no home, or it cannot be read
        return False


def note(digest: str, what: str) -> None:
    """Add a hash to the list of what is trusted: a file each, so that processes that add at once lose nothing."""
    if not digest or is_noted(digest):
        return
    try:
        place = _list()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        (place / digest).write_text(f"{what}\n", encoding="utf-8")
    except (OSError, RuntimeError) as error:
        _unwritten.add(digest)
        log.warning(
            "%s cannot be noted as trusted (%s), so later commands ask for --trust; %s names a folder that can be "
            "written to",
            *(what, error, CONFIG_HOME),
        )


def _list() -> Path:
    """Return the folder of the list, below that of the user's settings."""
    if named := os.environ.get(CONFIG_HOME):
        return Path(named) / "trusted"
    of_platform = {"win32": os.environ.get("APPDATA", "~/AppData/Roaming"), "darwin": "~/Library/Application Support"}
    home = os.environ.get("XDG_CONFIG_HOME") or of_platform.get(sys.platform, "~/.config")
    return Path(home).expanduser() / "rlcore" / "trusted"


def _of_text(text: str) -> str:
    return hashlib.sha256(b"config" + text.encode()).hexdigest()


def _code_files(places: Iterable[Path]) -> Iterator[bytes]:
    """Yield name and content of the files at places, and of those below that Python imports, always in one order."""
    for place in places:
        if place.is_file():
            yield place.name.encode() + b"\0" + place.read_bytes()
        for folder, folders, names in os.walk(place):
            folders.sort()
            for file in (Path(folder, name) for name in sorted(names) if name.endswith(_SUFFIXES)):
                if file.is_file():
                    yield str(file.relative_to(place)).encode() + b"\0" + file.read_bytes()


def _names(raw: RawConfig, key: str) -> list[str]:
    """Return what a key of `[plugins]` lists; what does not fit there is refused elsewhere."""
    plugins = raw.values.get("plugins")
    names = plugins.get(key) if isinstance(plugins, Mapping) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _other_owner(place: Path) -> str:
    """Return to whom a place belongs, where that is neither the user nor the superuser; else nothing."""
    try:
        number = place.stat().st_uid
        if sys.platform == "win32" or number in (0, os.geteuid()):  # which has no such owners
            return ""
        import pwd

        return f"user {pwd.getpwuid(number).pw_name!r}"
    except OSError:  # there is nothing; what is to be loaded from there is refused elsewhere
        return ""
    except KeyError:
        return f"user {number}"
