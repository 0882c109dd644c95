"""A new plugin of the repository of rlcore: what it takes from there, so that the tests of the repository pass."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from rlcore.errors import ConfigError

# path to template
FILES: Final = {
    "pyproject.toml": "repository/pyproject.toml.in",
    "README.md": "repository/README.md.in",
    "src/$package/__init__.py": "plugin/init.py.in",
    "src/$package/$kind.py": "plugin/$template/component.py.in",
    "tests/example.toml": "plugin/example.toml.in",
    "tests/test_contracts.py": "plugin/$template/test_contracts.py.in",
}
# that look at all plugins
TESTS: Final = ("tests/tree", "tests/unit/plugins/test_known.py", "tests/contract/test_readmes.py")
# of `[project]`, by their names in the template
_KEYS: Final = {
    "version": "version",
    "requires_python": "requires-python",
    "license": "license",
    "license_files": "license-files",
    "classifiers": "classifiers",
}
_IMPORT: Final = re.compile(r"(?:import|from) \S+")
_OF_CORE: Final = re.compile(r"(?:import|from) rlcore\b")


def check_root(root: Path) -> None:
    """Refuse a folder that is not the root of a checkout of rlcore.

    Raises:
        ConfigError: it is not; says where to go.
    """
    pyproject = root / "pyproject.toml"
    try:
        name = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["name"]
    except (OSError, ValueError, KeyError):
        name = None
    if name != "rlcore" or not (root / "plugins").is_dir():
        raise ConfigError(
            f"--of-rlcore makes a plugin of the repository of rlcore, and {str(root.resolve())!r} is not its root; go "
            "there, or leave the flag out"
        )


def values_of(root: Path) -> dict[str, str]:
    """Return what the pyproject of every plugin says as that of the core does, as it is written there."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    lines = {name: _written(rf"{key} = (?:\[\n.*?^\]|[^\n]*)", text) for name, key in _KEYS.items()}
    return {**lines, "urls": _written(r"\[project\.urls\]\n.*?(?=\n\n|\Z)", text).rstrip()}


def _written(pattern: str, text: str) -> str:
    """Return the lines of a TOML file that begin with a pattern."""
    match = re.search(f"^{pattern}", text, re.MULTILINE | re.DOTALL)
    if match is None:
        raise ConfigError(f"the pyproject.toml of rlcore has nothing like {pattern!r}")
    return match[0]


def imports_sorted(source: str) -> str:
    """Return a module with the imports of the core in a paragraph of their own, the last, as ruff sorts them there."""
    paragraphs = source.split("\n\n")
    return "\n\n".join(_core_last(one) if _is_imports(one) else one for one in paragraphs)


def _is_imports(paragraph: str) -> bool:
    return all(_IMPORT.match(line) for line in paragraph.strip("\n").split("\n"))


def _core_last(imports: str) -> str:
    lines = imports.split("\n")
    of_core = [line for line in lines if _OF_CORE.match(line)]
    others = [line for line in lines if line not in of_core]
    return "\n\n".join("\n".join(part) for part in (others, of_core) if part)
