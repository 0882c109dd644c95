"""What all tests share: a list of trusted code that is not that of the user who runs them, and the level of the log."""

from __future__ import annotations

import logging
import os
import tempfile

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
def _log_level() -> None:
    """Begin with the level of a new process: a command sets it, such as by `--quiet`, in a fixture of a module too."""
    logging.getLogger().setLevel(logging.WARNING)
