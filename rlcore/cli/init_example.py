"""`rlcore init --example`: write a config or a script of the examples, with the modules that it names."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from rlcore.errors import ConfigError, did_you_mean
from rlcore.presets.filling import write_new


def examples() -> dict[str, str]:
    """Return the text of every example by its file."""
    folder = files("rlcore") / "examples"
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.is_file()}


def write_example(name: str) -> int:
    """Write an example into the working directory; modules that are there already stay as they are.

    Raises:
        ConfigError: there is none of this name, or its file exists.
    """
    texts = examples()
    by_name = {Path(file).stem: file for file in sorted(texts)}
    file = by_name.get(name, name)
    if file not in texts:
        raise ConfigError(f"there is no example {name!r}{did_you_mean(name, by_name)}; all: {', '.join(by_name)}")
    write_new(Path(file), texts[file])
    written = [file]
    for module in re.findall(r'"(\w+):', texts[file]):
        if f"{module}.py" in texts and not Path(f"{module}.py").exists():
            write_new(Path(f"{module}.py"), texts[f"{module}.py"])
            written.append(f"{module}.py")
    print(f"wrote {', '.join(written)}")
    if file.endswith(".toml") or "__main__" in texts[file]:
        print(f"next:\n  {'rlcore train' if file.endswith('.toml') else 'python'} {file}")
    return 0
