"""The command line: arguments, and the exit code of an error. What a command does is in the other files here."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from functools import partial
from typing import Final, NoReturn

from rlcore.cli.arguments import override_arguments as _override_arguments
from rlcore.cli.arguments import positive as _positive
from rlcore.cli.parsing import Parser, add_plugin_commands
from rlcore.errors import MissingPluginError, RlcoreError, notes_of
from rlcore.process import interrupts
from rlcore.process.leaving import dismiss, leave
from rlcore.process.streams import lenient_output, show_log
from rlcore.version import __version__

# commands of the core with a module of their name, which is imported when one is called, as a command of a plugin is
_COMMANDS: Final = {
    "train": "train from a config",
    "config": "check, show or explain a config",
    "env": "check an environment",
}
# commands that build parts, or look at what their config sections may hold
_NEED_TORCH: Final = ("config", "env", "evaluate", "export", "init", "prove", "train", "watch")
# commands that are there for what they do; all others are there for what they print
_PRINT_BESIDES: Final = ("train", "prove", "sync", "plot", "report")

# how long what plugins left in the process of a command without --grace may take to end
_END_SECONDS: Final = 20.0
# the kinds that `rlcore plugins new` has a template for: all, in the order of the page that shows them; their names are
# here, since the parser is built without importing what plugins are made of
NEW_KINDS: Final = (
    *("hook", "logger", "loss", "env", "transform", "model", "estimator", "optimizer", "scheduler"),
    *("collector", "buffer", "learner", "evaluator", "checkpointer", "launcher"),
)


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
    top.set_defaults(of_plugin=None, grace=_END_SECONDS)  # one command has an option for it
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _init(commands)
    for name, text in _COMMANDS.items():
        commands.add_parser(name, help=text, fill=partial(_fill, name))
    _plugins(commands)
    _ckpt(commands)
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
        try:
            options = parser(arguments).parse_args(arguments)
        except RlcoreError as error:  # the plugin of a command cannot be used
            return _refused(error), _END_SECONDS
        except KeyboardInterrupt:
            return _interrupted(), _END_SECONDS
        show_log(vars(options).get("quiet", False))
        code = _run(options)
        output.flush()
    if code == 0 and options.command not in _PRINT_BESIDES and not isinstance(output.lost, BrokenPipeError | None):
        print(f"error: the output could not be written: {output.lost}", file=sys.stderr)
        code = 1
    return code, options.grace


def _run(options: argparse.Namespace) -> int:
    try:
        _check_torch(options.command)
        command = options.of_plugin or importlib.import_module(f"rlcore.cli.{options.command}")
        return int(command.run(options))
    except RlcoreError as error:
        return _refused(error)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit:  # of a part, whose code says nothing about the command
        traceback.print_exc()
        return 1


def _fill(command: str, parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command of the core."""
    importlib.import_module(f"rlcore.cli.{command}").add_arguments(parser)


def _check_torch(command: str) -> None:
    """See that a command has torch if it needs it.

    Raises:
        MissingPluginError: it has not; says how to install it.
    """
    if command in _NEED_TORCH and importlib.util.find_spec("torch") is None:
        raise MissingPluginError(
            f"rlcore {command} needs PyTorch, which is not installed here: pip install torch; for a build for a GPU "
            "or for the CPU alone, see https://pytorch.org/get-started"
        )


def _init(commands: argparse._SubParsersAction[Parser]) -> None:
    text = "write a config to begin with: a preset for an algorithm and an environment"
    init = commands.add_parser("init", help=text)
    init.add_argument(
        "preset", metavar="PRESET", nargs="?", help="an algorithm, such as ppo, or one of its presets; default: asks"
    )
    init.add_argument("--env", metavar="ID", help="id of the environment, such as CartPole-v1")
    init.add_argument("--name", metavar="NAME", help="name of the run; default: algorithm and environment")
    init.add_argument("--output", metavar="FILE", help="the config to write; default: NAME.toml")
    init.add_argument("--example", metavar="NAME", help="write this example instead, such as ppo-cartpole")
    init.add_argument("--list", action="store_true", help="list the presets: for what, and what they reached")


def _interrupted() -> int:
    """Say that Ctrl-C ended a command; return its exit code."""
    print("stopped by Ctrl-C", file=sys.stderr)
    return 130


def _refused(error: RlcoreError) -> int:
    """Print an error of rlcore; return its exit code."""
    notes = "".join(f"\n  {note}" for note in notes_of(error))
    print(f"error: {error}{notes}", file=sys.stderr)
    return error.exit_code


def _plugins(commands: argparse._SubParsersAction[Parser]) -> None:
    plugins = commands.add_parser("plugins", help="list or show plugins, or the call order of hooks")
    actions = plugins.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list what is installed, from metadata alone")
    listing.add_argument("--json", action="store_true", help="print JSON")
    show = actions.add_parser("show", help="show the components of one plugin and their config keys")
    show.add_argument("name", metavar="NAME", help="a plugin, as listed")
    actions.add_parser("doctor", help="find conflicts, broken and slow plugins, each with the fix")
    text = "make a package for a plugin of your own: a component that works, with tests, an example and workflows"
    new = actions.add_parser("new", help=text)
    new.add_argument("name", metavar="NAME", help="lower case letters, digits and hyphens; what a config will say")
    new.add_argument("--kind", choices=NEW_KINDS, required=True, help="what it provides")
    new.add_argument("--folder", metavar="DIR", help="the folder to make; default: rlcore-plugin-NAME")
    order = actions.add_parser("order", help="show which hooks each loop point calls, in order")
    order.add_argument("config", metavar="CONFIG", help="a TOML file")
    _override_arguments(order)


def _ckpt(commands: argparse._SubParsersAction[Parser]) -> None:
    ckpt = commands.add_parser("ckpt", help="list, verify, show, prune or convert the checkpoints of a run")
    actions = ckpt.add_subparsers(dest="action", required=True, metavar="ACTION")
    made = {}
    for name, text in (
        ("list", "list the checkpoints, the latest first"),
        ("verify", "compare every file with its checksum; exit code 5 when one is damaged"),
        ("show", "show what a checkpoint says about itself: components, hashes, versions, why it is not exact"),
        ("prune", "remove old checkpoints; the latest that is whole and the best one stay"),
        ("convert", "write a checkpoint again by another back end, with the same hashes; the old one stays"),
    ):
        made[name] = actions.add_parser(name, help=text)
        made[name].add_argument("run", metavar="RUN", help="a run folder")
    for name, default in (("verify", "all"), ("show", "the latest"), ("convert", "the latest")):
        made[name].add_argument(
            "checkpoint", metavar="ID", nargs="?", help=f"name, its beginning, or frame; default: {default}"
        )
    for name in ("list", "show"):
        made[name].add_argument("--json", action="store_true", help="print JSON")
    made["prune"].add_argument(
        "--keep-last", type=_positive, default=2, metavar="N", help="how many of the latest to keep; default: 2"
    )
    made["convert"].add_argument("--to", required=True, metavar="BACKEND", help="torch, torchsnapshot, dcp or another")
    made["prune"].add_argument("--dry-run", action="store_true", help="say what would be removed, remove nothing")


if __name__ == "__main__":
    program()
