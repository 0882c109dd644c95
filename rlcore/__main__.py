"""`python -m rlcore`."""

from __future__ import annotations

from rlcore.cli import program

program()
