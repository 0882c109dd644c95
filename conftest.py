"""What all tests share: a list of trusted code that is not that of the user who runs them, and the level of the log."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator

import pytest

HOME = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make it before any process is started that inherits the environment."""
    config.stash[HOME] = tempfile.TemporaryDirectory(prefix="rlcore-config-")
    os.environ["RLCORE_CONFIG_HOME"] = config.stash[HOME].name


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove it."""
    config.stash[HOME].cleanup()


@pytest.fixture(autouse=True)
def _log_level() -> Iterator[None]:
    """Put the level back that a command sets for its process, such as by `--quiet`."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)
