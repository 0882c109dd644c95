"""Write the generated parts of the documentation from the code.

    python docs/reference/generate.py            write them
    python docs/reference/generate.py --check    write nothing; fail when a page differs from the code

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`. Everything around it is written by hand.
The pages of `made_pages.py` are written as a whole, and are not in the repository.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Final

import hook_points
import interfaces
import json_answers
import measured
import plugin_index
import preset_tables
import rooms
from catalogue_file import catalogue_files
from keys import key_table
from made_pages import PLUGIN_PAGES, distributions, is_made, made_pages
from rlcore_plugin_testing.new_plugin import SUMMARIES, kind_of, package
from tables import table

from rlcore import types
from rlcore.cli.command_line import parser
from rlcore.cli.parsing import Parser
from rlcore.cli.train import EXIT_CODES
from rlcore.config.core import CORE_SECTIONS, DEFAULT_USE, CheckpointConfig
from rlcore.config.sections import REQUIRED
from rlcore.plugins.catalogue import FILE, PUBLISHED, parsed
from rlcore.plugins.component import COMPONENT_SECTIONS

ROOT: Final = Path(__file__).resolve().parents[2]
COMMAND: Final = "python docs/reference/generate.py"

_BLOCK: Final = re.compile(r"(<!-- generated: ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_FAULT_TEST: Final = re.compile(r"test_((?:[a-j]\d+_)+)(.*)")


# the config


def core_sections() -> str:
    """Return the sections that are the core's own."""
    sections = {**CORE_SECTIONS, "checkpoint": CheckpointConfig}
    return "\n".join(
        f"### `[{name}]`\n\n{inspect.getdoc(schema)}\n\n{key_table(schema)}" for name, schema in sections.items()
    )


def component_sections() -> str:
    """Return the table of the sections that name components."""
    rows = []
    for section, (kind, repeated) in COMPONENT_SECTIONS.items():
        default = f"`{DEFAULT_USE[section]}`" if section in DEFAULT_USE else ""
        needed = "required" if section in REQUIRED else f"default: {default}" if default else "optional"
        rows.append([f"`[[{section}]]`" if repeated else f"`[{section}]`", kind, needed])
    return table(["section", "kind of component", "needed"], rows)


# the command line


def command_line() -> str:
    """Return every command with its arguments and options."""
    return "\n".join(_commands(parser()))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _commands(command: argparse.ArgumentParser) -> Iterator[str]:
    if isinstance(command, Parser):
        command.complete()
    subcommands = next((a for a in command._actions if isinstance(a, argparse._SubParsersAction)), None)
    if subcommands is not None:
        for subcommand in subcommands.choices.values():
            yield from _commands(subcommand)
        return
    helps = {name: action.help for name, action in _help_of_commands(parser())}
    actions = [action for action in command._actions if action.dest != "help"]
    text = command.description or helps.get(command.prog) or ""
    usage = " ".join([command.prog, *(_usage(action) for action in actions)])
    rows = [[f"`{_signature(action)}`", action.help or ""] for action in actions]
    yield f"## {command.prog}\n\n{_sentence(text)}\n\n```text\n{usage}\n```\n\n{table(['argument', 'meaning'], rows)}"


def _help_of_commands(command: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    if isinstance(command, Parser):
        command.complete()
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield f"{command.prog} {choice.dest}", choice
            for subcommand in action.choices.values():
                yield from _help_of_commands(subcommand)


def _signature(action: argparse.Action) -> str:
    name = action.option_strings[-1] if action.option_strings else ""
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    value = f"[{value}]" if action.nargs == "?" else f"{value}..." if action.nargs == "+" else value
    value = f"[{value}...]" if action.nargs == "*" else value
    return f"{name} {value}".strip()


def _usage(action: argparse.Action) -> str:
    repeated = "..." if isinstance(action, argparse._AppendAction) else ""
    optional = action.option_strings and not action.required
    return f"[{_signature(action)}]{repeated}" if optional else _signature(action)


def exit_codes() -> str:
    """Return the table of exit codes."""
    return table(["code", "meaning"], [[str(code), meaning] for code, meaning in EXIT_CODES.items()])


# kinds


def kinds() -> str:
    """Return the component that `rlcore plugins new` writes by each template, and the name of its interface."""
    parts = []
    for template, summary in SUMMARIES.items():
        kind = kind_of(template)
        files = package(f"my-{template}", template)
        code = next(text for path, text in files.items() if path.endswith(f"/{kind}.py"))
        protocol = getattr(types, kind.capitalize(), None)
        needed = f"Its interface is `rlcore.types.{protocol.__name__}`. " if protocol is not None else ""
        parts.append(
            f"## {template.replace('-', ' ').capitalize()}\n\n{needed}The template: {summary}.\n\n"
            f"```python file=my_{template.replace('-', '_')}.py\n{code.strip()}\n```"
        )
    return "\n\n".join(parts)


# faults


def fault_table() -> str:
    """Return the tests of the suites whose names begin with rows of the fault matrix, by row and file."""
    shown: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for file in sorted([*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("plugins/*/tests/test_h_*.py")]):
        for node in ast.walk(ast.parse(file.read_text())):
            match = _FAULT_TEST.fullmatch(node.name) if isinstance(node, ast.FunctionDef) else None
            if match and isinstance(node, ast.FunctionDef):
                slow = any("mark.slow" in ast.unparse(decorator) for decorator in node.decorator_list)
                numbers = tuple(match[1].upper().strip("_").split("_"))
                what = match[2].replace("_", " ") + (" (slow)" if slow else "")
                shown.setdefault((numbers, str(file.relative_to(ROOT)).removeprefix("tests/")), []).append(what)
    ordered = sorted(shown.items(), key=lambda item: (item[0][0][0][0], int(item[0][0][0][1:])))
    rows = [[", ".join(numbers), "; ".join(what), f"`{file}`"] for (numbers, file), what in ordered]
    return table(["row", "what is shown", "tests in `tests/`, or of a plugin"], rows)


BLOCKS: Final[dict[str, Callable[[], str]]] = {
    "loop-points": lambda: hook_points.overview(["outer", "inner"]),
    "life-points": lambda: hook_points.overview(["life"]),
    "points": hook_points.sections,
    "interfaces": interfaces.sections,
    "core-sections": core_sections,
    "component-sections": component_sections,
    "rooms": rooms.room_map,
    "room-imports": rooms.room_imports,
    "command-line": command_line,
    "exit-codes": exit_codes,
    "json-document": json_answers.document,
    "json-answers": json_answers.answers,
    "faults": fault_table,
    "kinds": kinds,
    "measured-speed": measured.speed,
    "measured-learning": measured.learning,
    **{f"measured-beside-{peer}": partial(measured.beside, peer) for peer in ("cleanrl", "sb3", "torchrl")},
    "measured-beside-rejax": measured.beside_rejax,
    "measured-beside-rllib": measured.beside_rllib,
    "measured-beside-rsl-rl": measured.beside_rsl_rl,
    **{f"reached-{name}": partial(preset_tables.reached, name) for name in preset_tables.algorithms()},
}


def regenerated(text: str) -> str:
    """Return a page with its generated parts written again."""
    return _BLOCK.sub(lambda match: f"{match[1]}\n{BLOCKS[match[2]]()}\n{match[3]}", text)


def written_pages() -> list[Path]:
    """Return the pages of the repository, which are written by hand in part or as a whole."""
    pages = [ROOT / name for name in ("AGENTS.md", "CONTRIBUTING.md", "README.md")]
    pages += sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)
    return [page for page in pages if not is_made(page)]


def _is_installed(distribution: str) -> bool:
    try:
        return bool(metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check every page; return the exit code."""
    options = argparse.ArgumentParser(prog=COMMAND, description="Write the generated parts of the documentation.")
    options.add_argument("--check", action="store_true", help="write nothing; fail when a page differs from the code")
    check = options.parse_args(arguments).check
    absent = [name for name in distributions() if not _is_installed(name)]
    if absent:
        places = " ".join(f"-e plugins/{name}" for name in absent)
        sys.stderr.write(f"not installed here: {', '.join(absent)}; python -m pip install {places}\n")
        return 2
    stale = []
    wanted = catalogue_files()
    PUBLISHED.clear()
    PUBLISHED.update(parsed(wanted[FILE]))  # the pages are of what the plugins bring now
    made = {} if check else made_pages()
    wanted |= {page: regenerated(page.read_text()) for page in written_pages()} | made
    wanted |= plugin_index.index_files()
    for page, new in wanted.items():
        if not page.exists() or page.read_text() != new:
            stale.append(page.relative_to(ROOT))
            if not check:
                page.parent.mkdir(exist_ok=True)
                page.write_text(new)
    for page in () if check else {*PLUGIN_PAGES.glob("*.md")} - {*made}:  # of a plugin that is gone
        page.unlink()
    verb = "differs from the code" if check else "written"
    sys.stdout.writelines(f"{page}: {verb}\n" for page in stale)
    if check and stale:
        sys.stdout.write(f"run: {COMMAND}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
