"""`python -m rlcore`."""

from __future__ import annotations

from rlcore.cli.command_line import program

program()
