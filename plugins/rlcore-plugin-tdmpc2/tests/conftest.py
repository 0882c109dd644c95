"""The fixtures of the core's own tests: a tiny run, and the command line in this process."""

from tests.conftest import _plain_environment, build, cli, workdir, write_config

__all__ = ["_plain_environment", "build", "cli", "workdir", "write_config"]
