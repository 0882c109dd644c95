"""What all tests share: a list of trusted code of their own, in the place of that of the user who runs them."""

from __future__ import annotations

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
