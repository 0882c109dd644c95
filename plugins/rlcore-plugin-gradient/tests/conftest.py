"""The fixtures of the core's own tests: a tiny run in a folder of its own."""

from tests.conftest import build, cli, workdir, write_config

__all__ = ["build", "cli", "workdir", "write_config"]
