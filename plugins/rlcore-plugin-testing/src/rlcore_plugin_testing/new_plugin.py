"""`rlcore plugins new`: a package with a working component, its contract tests, an example and workflows."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shlex
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Final

from rlcore.cli import Answer, add_json
from rlcore.errors import ConfigError
from rlcore.plugins.catalogue import PREFIX, PUBLISHED
from rlcore.plugins.discovery import installed
from rlcore.plugins.host import PluginHost
from rlcore.version import __version__
from rlcore_plugin_testing import repository_plugin

# template to what it makes, in one line; a template has the name of the kind of its component, but for KINDS
SUMMARIES: Final = {
    "hook": "logs the mean return of the latest episodes",
    "logger": "metrics as lines of JSON",
    "loss": "policy gradient with critic and entropy bonus",
    "env": "a corridor to walk along",
    "tensor-env": "a corridor to walk along, as tensors on the device of the run",
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
# kind of the component of a template that has another name
KINDS: Final = {"tensor-env": "env"}
# plugins that a template builds on
NEEDS: Final = {
    "buffer": ("rlcore-plugin-rollout",),
    "evaluator": ("rlcore-plugin-rollout",),
    "launcher": ("rlcore-plugin-ddp",),
    "optimizer": ("rlcore-plugin-gradient",),
    "tensor-env": ("rlcore-plugin-device",),
}
# what the example of a template needs besides the section of its component
EXAMPLES: Final = {"tensor-env": ('[collector]\nuse = "device"\nframes_per_batch = 512',)}
# the files of a package, and the template of each; those below `$template/` differ
FILES: Final = {
    "pyproject.toml": "plugin/pyproject.toml.in",
    "README.md": "plugin/README.md.in",
    ".gitignore": "plugin/gitignore.in",
    ".github/workflows/test.yml": "plugin/test.yml.in",
    ".github/workflows/publish.yml": "plugin/publish.yml.in",
    "example.toml": "plugin/example.toml.in",
    "src/$package/__init__.py": "plugin/init.py.in",
    "src/$package/$kind.py": "plugin/$template/component.py.in",
    "tests/test_contracts.py": "plugin/$template/test_contracts.py.in",
}
LONGEST: Final = 40
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True)
class NewPlugin:
    """A package that was made.

    Attributes:
        folder: of the package.
        code: the file of its component.
        next: what to type or to do, in order.
    """

    folder: str
    code: str
    next: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore plugins new`."""
    parser.description = (
        "Make a package for a plugin of your own: a component that works, with tests, an example and workflows."
    )
    parser.add_argument("name", metavar="NAME", help="lower case letters, digits and hyphens; what a config will say")
    parser.add_argument("--kind", choices=tuple(SUMMARIES), required=True, help="what it provides")
    parser.add_argument("--folder", metavar="DIR", help="the folder to make; default: rlcore-plugin-NAME")
    parser.add_argument(
        "--of-rlcore",
        action="store_true",
        help="in the root of a checkout of rlcore: make plugins/rlcore-plugin-NAME, as its tests ask for",
    )
    add_json(parser, NewPlugin)


def run(options: argparse.Namespace) -> Answer:
    """Make the package and say what to type next."""
    check_name(options.name)
    if options.of_rlcore and options.folder:
        raise ConfigError("--of-rlcore says which folder is made: plugins/rlcore-plugin-NAME; leave --folder out")
    folder = Path(options.folder or f"{PREFIX}{options.name}")
    if options.of_rlcore:
        root = Path()
        repository_plugin.check_root(root)
        folder, files = root / "plugins" / folder, package(options.name, options.kind, root)
    else:
        files = package(options.name, options.kind)
    write(folder, files)
    kind = kind_of(options.kind)
    code = next(path for path in files if path.endswith(f"/{kind}.py"))
    steps = _steps_here(folder) if options.of_rlcore else _steps(folder)
    lines = [f"made {folder}: {_a(kind)} that works, in {code}", "next:", *(f"  {step}" for step in steps)]
    return Answer(NewPlugin(str(folder), str(folder / code), steps), "\n".join(lines) + "\n")


def kind_of(template: str) -> str:
    """Return the kind of the component that a template makes."""
    return KINDS.get(template, template)


def _steps(folder: Path) -> list[str]:
    """Return what to type after a package was made."""
    place = shlex.quote(str(folder))
    return [
        f'pip install -e {place} "rlcore[standard,test]"',
        f"pytest {place}",
        f"rlcore train {shlex.quote(str(folder / 'example.toml'))}",
    ]


def _steps_here(folder: Path) -> list[str]:
    """Return what to do after a plugin of the repository was made."""
    return [
        f".venv/bin/python -m pip install --no-deps --no-build-isolation -e {folder}",
        ".venv/bin/python docs/reference/generate.py",
        f".venv/bin/python -m pytest {folder} {' '.join(repository_plugin.TESTS)}",
        f".venv/bin/rlcore train {folder}/tests/example.toml",
    ]


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
    # a config that means a component of the core, or one that is named as its, would import the plugin
    core = {provided.component.name: str(provided) for provided in PluginHost().registry.provided}
    for other, published in PUBLISHED.items():
        if published.of_core:
            for kind, names in published.components.items():
                core |= {one: f"{kind} {one!r} ({PREFIX}{other})" for one in names}
    if name in core:
        raise ConfigError(f"the name {name!r} is that of {core[name]}; choose another")
    module = _module(name)
    if importlib.util.find_spec(module) is not None:
        raise ConfigError(
            f"the name {name!r} gives the package {module!r}, which can be imported already; choose another"
        )


def package(name: str, template: str, root: Path | None = None) -> dict[str, str]:
    """Return path to text of every file of a new package.

    Args:
        name: of the plugin and of its component.
        template: one of SUMMARIES.
        root: of the checkout of rlcore in which it is made; None for a package of its own.
    """
    templates = resources.files("rlcore_plugin_testing") / "templates"
    major, minor, _ = __version__.split(".", 2)
    kind, summary, needs = kind_of(template), SUMMARIES[template], ("rlcore", *NEEDS.get(template, ()))
    values = {
        "name": name,
        "kind": kind,
        "template": template,
        "distribution": f"{PREFIX}{name}",
        "package": _module(name),
        "class_name": _class_name(name, kind, _read(templates, f"plugin/{template}/component.py.in")),
        "summary": summary,
        "description": f"{_a(kind).capitalize()} for rlcore: {summary}",
        "requires": ", ".join(f'"{needed}>={major}.{minor},<{int(major) + 1}"' for needed in needs),
        "example": 'Path(__file__).parents[1] / "example.toml"',
    }
    if root is not None:
        values |= {**repository_plugin.values_of(root), "example": 'Path(__file__).with_name("example.toml")'}
    for part in ("section.toml", "about.md"):
        text = Template(_read(templates, f"plugin/{template}/{part}.in")).substitute(values)
        values[part.partition(".")[0]] = text.strip()
    files = {
        Template(path).substitute(values): Template(_read(templates, Template(source).substitute(values))).substitute(
            values
        )
        for path, source in (FILES if root is None else repository_plugin.FILES).items()
    }
    for path in (path for path in files if path.endswith("example.toml")):
        for section in (values["section"], *EXAMPLES.get(template, ())):
            files[path] = _with_section(files[path], section)
    files[f"src/{values['package']}/py.typed"] = ""
    if root is None:
        return files
    sources = {path: repository_plugin.imports_sorted(text) for path, text in files.items() if path.endswith(".py")}
    return {**files, **sources, "LICENSE": (root / "LICENSE").read_text(encoding="utf-8")}


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
