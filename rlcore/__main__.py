"""`rlcore` and `python -m rlcore`."""

from __future__ import annotations

from typing import NoReturn

from rlcore.process import interrupts


def program() -> NoReturn:
    """Be the program, which hears Ctrl-C before it imports what takes long."""
    interrupts.listen()
    from rlcore.cli import command_line

    command_line.program()


if __name__ == "__main__":
    program()
