"""The command line: arguments, and the exit code of an error. What a command does is in the other files here."""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NoReturn

from rlcore.cli.arguments import override_arguments as _override_arguments
from rlcore.cli.arguments import positive as _positive
from rlcore.cli.arguments import seconds as _seconds
from rlcore.cli.durations import duration
from rlcore.cli.parsing import Parser, add_plugin_commands
from rlcore.cli.torch_missing import check_torch
from rlcore.errors import RlcoreError, notes_of
from rlcore.process import interrupts
from rlcore.process.leaving import dismiss, leave
from rlcore.process.streams import lenient_output, show_log
from rlcore.version import __version__

EXIT_CODES: Final = {
    0: "done",
    1: "an error that rlcore did not expect; the traceback says where; or `rlcore sync` left something",
    2: "the config, the command line, a plugin or the run folder cannot be used; no frame was collected",
    3: "an environment raised, gave what is not finite, or failed `rlcore env check`; or nothing moved any more",
    4: "a loss or gradient was not finite",
    5: "a checkpoint could not be written or read, or `rlcore prove` found what does not hold",
    7: "a hook raised, or broke the contract of its point",
    129: "stopped by SIGHUP, as a closed terminal sends it, state saved",
    130: "stopped by Ctrl-C, state saved; or at once by a second one, and the latest checkpoint stands",
    131: "stopped at once by SIGQUIT; the latest checkpoint stands",
    137: "killed; by the companion of `rlcore train` when the process kept the GIL or did not end",
    138: "stopped by SIGUSR1, state saved",
    140: "stopped by SIGUSR2, state saved",
    142: "stopped by SIGALRM, state saved",
    143: "stopped by SIGTERM, state saved",
}

# commands that are there for what they do; all others are there for what they print
_PRINT_BESIDES: Final = ("train", "prove", "sync", "plot", "report")

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
    top.set_defaults(of_plugin=None, grace=_END_SECONDS)  # one command has an option for it
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _train(commands)
    _config(commands)
    _plugins(commands)
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
        show_log(vars(options).get("quiet", False))
        code = _run(options)
        output.flush()
    if code == 0 and options.command not in _PRINT_BESIDES and not isinstance(output.lost, BrokenPipeError | None):
        print(f"error: the output could not be written: {output.lost}", file=sys.stderr)
        code = 1
    return code, options.grace


def _run(options: argparse.Namespace) -> int:
    try:
        check_torch(options.command)
        command = options.of_plugin or importlib.import_module(f"rlcore.cli.{options.command}")
        return int(command.run(options))
    except RlcoreError as error:
        return _refused(error)
    except KeyboardInterrupt:
        print("stopped by Ctrl-C", file=sys.stderr)
        return 130
    except SystemExit:  # of a part, whose code says nothing about the command
        traceback.print_exc()
        return 1


def _refused(error: RlcoreError) -> int:
    """Print an error of rlcore; return its exit code."""
    notes = "".join(f"\n  {note}" for note in notes_of(error))
    print(f"error: {error}{notes}", file=sys.stderr)
    return error.exit_code


def _train(commands: argparse._SubParsersAction[Parser]) -> None:
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
    train = commands.add_parser(
        "train",
        help="train from a config",
        epilog=f"exit codes of rlcore:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    train.add_argument("config", metavar="CONFIG", nargs="?", help="a TOML file; with --resume RUN, default: its own")
    _override_arguments(train)
    train.add_argument(
        "--until",
        type=_positive,
        metavar="N",
        help="stop at N frames, or updates where the run counts them; schedules keep their horizon",
    )
    train.add_argument(
        "--max-time",
        type=duration,
        metavar="TIME",
        help="stop, with the state saved, after the iteration in which this process is so old: 90s, 30m, 3h55m, 1d",
    )
    train.add_argument(
        "--resume", nargs="?", const="", metavar="RUN", help="continue the run of CONFIG, or the run folder RUN"
    )
    train.add_argument(
        "--seeds", metavar="N|LIST", help="train N seeds from run.seed on, or those of a list such as 1,2,5; a run each"
    )
    train.add_argument("--jobs", type=_positive, metavar="J", help="with --seeds: how many at a time; default: 1")
    train.add_argument(
        "--drop", action="append", default=[], metavar="NAME", help="leave the checkpoint's state of NAME unused"
    )
    train.add_argument(
        "--fresh", action="append", default=[], metavar="NAME", help="start component NAME over, and what depends on it"
    )
    train.add_argument(
        "--accept-changes", action="store_true", help="resume although the config, or the run, is not the same"
    )
    train.add_argument(
        "--grace",
        type=_seconds,
        default=20.0,
        metavar="SECONDS",
        help="time for a stop by signal, and for what plugins left running at the end; default: 20",
    )
    train.add_argument("--dry-run", action="store_true", help="build everything, train nothing, write nothing")
    train.add_argument("--quiet", action="store_true", help="print errors alone: no progress, no warnings, no summary")


def _config(commands: argparse._SubParsersAction[Parser]) -> None:
    config = commands.add_parser("config", help="check, show or explain a config")
    actions = config.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("check", "report every problem of a config"),
        ("show", "print the config with all defaults and versions"),
        ("explain", "print every key: its value, where the value comes from, what it means"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("config", metavar="CONFIG", help="a TOML file")
        _override_arguments(action)
    actions.add_parser("schema", help="print a JSON schema of everything installed, for editors")


def _plugins(commands: argparse._SubParsersAction[Parser]) -> None:
    text = "list, show, check or begin plugins, or show the call order of hooks"
    commands.add_parser("plugins", help=text, fill=_fill_plugins)


def _fill_plugins(plugins: Parser) -> None:
    actions = plugins.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list what is installed, from metadata alone")
    listing.add_argument("--json", action="store_true", help="print JSON")
    show = actions.add_parser("show", help="show the components of one plugin and their config keys")
    show.add_argument("name", metavar="NAME", help="a plugin, as listed")
    order = actions.add_parser("order", help="show which hooks each loop point calls, in order")
    order.add_argument("config", metavar="CONFIG", help="a TOML file")
    _override_arguments(order)
    add_plugin_commands(actions, "plugins")


if __name__ == "__main__":
    program()
