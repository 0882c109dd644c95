"""`rlcore plugins new`: a package with a working component, its contract tests, an example and workflows."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shlex
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Final

from rlcore.errors import ConfigError
from rlcore.plugins.discovery import installed
from rlcore.plugins.host import PluginHost
from rlcore.version import __version__

# kind to what its template makes, in one line
SUMMARIES: Final = {
    "hook": "logs the mean return of the latest episodes",
    "logger": "metrics as lines of JSON",
    "loss": "policy gradient with critic and entropy bonus",
    "env": "a corridor to walk along",
    "transform": "appends the change of each observation",
    "model": "actor and critic with a shared body",
    "estimator": "returns of several steps",
    "optimizer": "steps by the sign of a momentum (Lion)",
    "scheduler": "falls by a factor at some fractions of the run",
    "collector": "steps the envs one batch at a time",
    "buffer": "samples steps by the size of their advantage",
    "learner": "gradient steps with clipped elements",
    "evaluator": "episodes until the mean return is known well enough",
    "checkpointer": "compressed tensors in one file",
    "launcher": "ranks on this host, each on a core of its own",
}
# plugins that a template builds on, by kind
NEEDS: Final = {"launcher": ("rlcore-plugin-ddp",)}
# the files of a package, and the template of each; `$kind/` templates differ from kind to kind
FILES: Final = {
    "pyproject.toml": "pyproject.toml.in",
    "README.md": "README.md.in",
    ".gitignore": "gitignore.in",
    ".github/workflows/test.yml": "test.yml.in",
    ".github/workflows/publish.yml": "publish.yml.in",
    "example.toml": "example.toml.in",
    "src/$package/__init__.py": "init.py.in",
    "src/$package/$kind.py": "$kind/component.py.in",
    "tests/test_contracts.py": "$kind/test_contracts.py.in",
}
PREFIX: Final = "rlcore-plugin-"
LONGEST: Final = 40
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore plugins new`."""
    parser.description = (
        "Make a package for a plugin of your own: a component that works, with tests, an example and workflows."
    )
    parser.add_argument("name", metavar="NAME", help="lower case letters, digits and hyphens; what a config will say")
    parser.add_argument("--kind", choices=tuple(SUMMARIES), required=True, help="what it provides")
    parser.add_argument("--folder", metavar="DIR", help="the folder to make; default: rlcore-plugin-NAME")


def run(options: argparse.Namespace) -> int:
    """Make the package and say what to type next."""
    check_name(options.name)
    folder = Path(options.folder or f"{PREFIX}{options.name}")
    files = package(options.name, options.kind)
    write(folder, files)
    code = next(path for path in files if path.endswith(f"/{options.kind}.py"))
    place = shlex.quote(str(folder))
    print(f"made {folder}: {_a(options.kind)} that works, in {code}")
    print("next:")
    print(f'  pip install -e {place} "rlcore[standard,test]"')
    print(f"  pytest {place}")
    print(f"  rlcore train {shlex.quote(str(folder / 'example.toml'))}")
    return 0


def check_name(name: str) -> None:
    """Refuse a name that cannot be used, or that something else has.

    Raises:
        ConfigError: says why, and what to do.
    """
    if name.startswith((PREFIX, PREFIX.replace("-", "_"))):
        short = name[len(PREFIX) :].replace("_", "-")
        raise ConfigError(
            f"the name {name!r} is that of a distribution; leave out {PREFIX!r}: rlcore plugins new {short}"
        )
    if not _NAME.fullmatch(name):
        fixed = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")
        hint = f"; {fixed!r} would do" if len(fixed) > 1 and _NAME.fullmatch(fixed) else ""
        raise ConfigError(f"a plugin name is lower case letters, digits and single hyphens, not {name!r}{hint}")
    if len(name) > LONGEST:
        raise ConfigError(f"the name {name!r} has {len(name)} characters; {LONGEST} are the most")
    for plugin in installed():
        if name == plugin.name or plugin.distribution.replace("_", "-").lower() == f"{PREFIX}{name}":
            raise ConfigError(f"the name {name!r} is that of an installed plugin ({plugin.owner}); choose another")
    for provided in PluginHost().registry.provided:
        if name == provided.component.name:  # a config that means the core's would import the plugin
            raise ConfigError(f"the name {name!r} is that of {provided}; choose another")
    module = _module(name)
    if importlib.util.find_spec(module) is not None:
        raise ConfigError(
            f"the name {name!r} gives the package {module!r}, which can be imported already; choose another"
        )


def package(name: str, kind: str) -> dict[str, str]:
    """Return path to text of every file of a new package."""
    templates = resources.files("rlcore_plugin_testing") / "templates" / "plugin"
    major, minor, _ = __version__.split(".", 2)
    summary, needs = SUMMARIES[kind], ("rlcore", *NEEDS.get(kind, ()))
    values = {
        "name": name,
        "kind": kind,
        "distribution": f"{PREFIX}{name}",
        "package": _module(name),
        "class_name": _class_name(name, kind, _read(templates, f"{kind}/component.py.in")),
        "summary": summary,
        "description": f"{_a(kind).capitalize()} for rlcore: {summary}",
        "requires": ", ".join(f'"{needed}>={major}.{minor},<{int(major) + 1}"' for needed in needs),
    }
    for part in ("section.toml", "about.md"):
        text = Template(_read(templates, f"{kind}/{part}.in")).substitute(values)
        values[part.partition(".")[0]] = text.strip()
    files = {
        Template(path).substitute(values): Template(_read(templates, Template(source).substitute(values))).substitute(
            values
        )
        for path, source in FILES.items()
    }
    files["example.toml"] = _with_section(files["example.toml"], values["section"])
    return {**files, f"src/{values['package']}/py.typed": ""}


def write(folder: Path, files: dict[str, str]) -> None:
    """Write the files into a new folder.

    Raises:
        ConfigError: the folder exists, or cannot be written.
    """
    try:
        folder.mkdir(parents=True)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise ConfigError(f"{str(folder)!r} exists already; name a new folder with --folder") from None
    except OSError as error:
        raise ConfigError(f"{str(folder)!r} cannot be written: {error}") from error


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


def _module(name: str) -> str:
    return f"{PREFIX}{name}".replace("-", "_")


def _class_name(name: str, kind: str, source: str) -> str:
    """Return the name in capitals with the kind at its end, once, and not one that the template uses otherwise."""
    words = [*name.split("-"), kind]
    if len(words) > 2 and words[-2] == kind:
        words.pop()
    name_of_class = "".join(word.capitalize() for word in words)
    taken = set(re.findall(r"\w+", source))
    return f"{name_of_class}{kind.capitalize()}" if name_of_class in taken else name_of_class


def _with_section(config: str, section: str) -> str:
    """Return an example in which a section is replaced; a hook comes in addition to those that there are."""
    blocks = config.strip().split("\n\n")
    header = section.splitlines()[0]
    places = [number for number, block in enumerate(blocks) if block.startswith(header) and header != "[[hook]]"]
    if places:
        blocks[places[0]] = section
    else:
        blocks.append(section)
    return "\n\n".join(blocks) + "\n"


def _read(templates: Traversable, path: str) -> str:
    return templates.joinpath(*path.split("/")).read_text(encoding="utf-8")
