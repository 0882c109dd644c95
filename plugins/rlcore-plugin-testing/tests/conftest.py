"""The fixtures of the core's own tests: a tiny run, the command line, a folder of fake distributions."""

from tests.conftest import _plain_environment, build, cli, site, workdir, write_config

__all__ = ["_plain_environment", "build", "cli", "site", "workdir", "write_config"]
