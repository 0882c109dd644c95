"""`rlcore init --example`: write a config or a script of the examples, with the other ones that it names."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from rlcore.cli import Answer
from rlcore.errors import ConfigError, did_you_mean
from rlcore_plugin_presets.command import Begun
from rlcore_plugin_presets.config_text import write_new


def is_example(file: str) -> bool:
    """Return whether a file of the examples has this name."""
    return _folder().joinpath(file).is_file()


def examples() -> dict[str, str]:
    """Return the text of every example by its file."""
    return {file.name: file.read_text(encoding="utf-8") for file in _folder().iterdir() if file.is_file()}


def write_example(name: str) -> Answer:
    """Write an example, and those that it names, into the working directory; what is named and there already stays.

    Raises:
        ConfigError: there is none of this name, or its file exists.
    """
    texts = examples()
    by_name = {Path(file).stem: file for file in sorted(texts)}
    file = by_name.get(name, name)
    if file not in texts:
        raise ConfigError(f"there is no example {name!r}{did_you_mean(name, by_name)}; all: {', '.join(by_name)}")
    named = [one for one in texts if re.search(rf'(?<![\w-]){re.escape(one)}|"{Path(one).stem}:', texts[file])]
    others = [one for one in sorted(named) if one != file]
    written = [file, *(one for one in others if not Path(one).exists())]
    for one in written:
        write_new(Path(one), texts[one])
    alone = file.endswith(".toml") and not any(one.endswith(".toml") for one in others)
    steps = f"next:\n  rlcore train {file}" if alone else f"next: as the first lines of {file} say"
    return Answer(Begun(written), f"wrote {', '.join(written)}\n{steps}\n")


def _folder() -> Traversable:
    return files("rlcore_plugin_presets") / "examples"
