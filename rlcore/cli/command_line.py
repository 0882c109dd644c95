"""The command line: arguments, and the exit code of an error. What a command does is in the other files here."""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final, NoReturn

from rlcore.cli.answers import Answer, document
from rlcore.cli.parsing import Parser, add_plugin_commands
from rlcore.errors import MissingPluginError, RlcoreError, notes_of
from rlcore.process import interrupts
from rlcore.process.leaving import dismiss, leave
from rlcore.process.streams import lenient_output, output_aside, show_log
from rlcore.version import __version__

# commands of the core with a module of their name, which is imported when one is called, as a command of a plugin is
_COMMANDS: Final = {
    "train": "train from a config",
    "config": "check, show or explain a config, or print a schema of all",
    "plugins": "list, show, check or begin plugins, or show the call order of hooks",
}

# how long what plugins left in the process of a command without --grace may take to end
_END_SECONDS: Final = 20.0


def parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of all commands.

    Args:
        arguments: of the command line; where they name a command of the core, those of plugins are not looked for.
    """
    top = Parser(
        prog="rlcore",
        description="Train reinforcement-learning agents from plugins and one config.",
        epilog="what the exit codes mean: rlcore train --help",
    )
    top.add_argument("--version", action="version", version=f"rlcore {__version__}")
    top.set_defaults(of_plugin=None, schema=None, grace=_END_SECONDS)  # one command has an option for it
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in _COMMANDS.items():
        commands.add_parser(name, help=text, fill=partial(_fill, name))
    if next((argument for argument in arguments if not argument.startswith("-")), "") not in commands.choices:
        add_plugin_commands(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        return _command(arguments)[0]
    finally:
        dismiss()


def program() -> NoReturn:
    """Be the program `rlcore`: run the command of the command line, and end the process whatever plugins left in it."""
    interrupts.listen()
    leave(*_command(None))


def _command(arguments: Sequence[str] | None) -> tuple[int, float]:
    """Run a command; return its exit code, and the seconds that its plugins may take to end."""
    with lenient_output() as output:
        arguments = sys.argv[1:] if arguments is None else arguments
        options = argparse.Namespace(command="", prog="rlcore", schema=None, grace=_END_SECONDS)
        in_json = "--json" in arguments
        try:
            options = parser(arguments).parse_args(arguments)
        except (RlcoreError, KeyboardInterrupt) as error:  # the plugin of a command cannot be used
            answer = _refused(error)
        else:
            in_json = options.schema is not None and options.json
            show_log(vars(options).get("quiet", False))
            with output_aside() if in_json else nullcontext():
                answer = _run(options)
        _say_error(answer.error)
        output.write(document(options, answer) if in_json else answer.text)
        output.flush()
    code = answer.code
    # a command without a text is there for what it does
    if code == 0 and (in_json or answer.text) and not isinstance(output.lost, BrokenPipeError | None):
        print(f"error: the output could not be written: {output.lost}", file=sys.stderr)
        code = 1
    return code, options.grace


def _run(options: argparse.Namespace) -> Answer:
    try:
        command = options.of_plugin or importlib.import_module(f"rlcore.cli.{options.command}")
        answer = command.run(options)
    except (RlcoreError, KeyboardInterrupt) as error:
        return _refused(error)
    except (Exception, SystemExit) as error:  # the code of the exit of a part says nothing about the command
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            return _refused(_no_torch(options.command))
        traceback.print_exc()
        return Answer(code=1, error=error)
    return answer if isinstance(answer, Answer) else Answer(code=int(answer))


def _fill(command: str, parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command of the core."""
    importlib.import_module(f"rlcore.cli.{command}").add_arguments(parser)


def _no_torch(command: str) -> MissingPluginError:
    """Return the error of a command that needs torch where there is none."""
    return MissingPluginError(
        f"rlcore {command} needs PyTorch, which is not installed here: pip install torch; for a build for a GPU "
        "or for the CPU alone, see https://pytorch.org/get-started"
    )


def _refused(error: RlcoreError | KeyboardInterrupt) -> Answer:
    """Return the answer of a command that an error of rlcore ended, or Ctrl-C."""
    return Answer(code=error.exit_code if isinstance(error, RlcoreError) else 130, error=error)


def _say_error(error: BaseException | None) -> None:
    """Print an error of rlcore, or that Ctrl-C ended the command."""
    if isinstance(error, RlcoreError):
        notes = "".join(f"\n  {note}" for note in notes_of(error))
        print(f"error: {error}{notes}", file=sys.stderr)
    elif isinstance(error, KeyboardInterrupt):
        print("stopped by Ctrl-C", file=sys.stderr)


if __name__ == "__main__":
    program()
