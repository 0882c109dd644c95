"""The fixtures of the core's own tests: the command line in this process, and a folder of fake distributions."""

from tests.conftest import _plain_environment, cli, site, workdir

__all__ = ["_plain_environment", "cli", "site", "workdir"]
