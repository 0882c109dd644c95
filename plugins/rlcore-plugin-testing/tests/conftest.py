"""The fixtures of the core's own tests: a tiny run, the command line in this process, and fake distributions."""

from tests.conftest import _plain_environment, build, cli, site, workdir, write_config

__all__ = ["_plain_environment", "build", "cli", "site", "workdir", "write_config"]
