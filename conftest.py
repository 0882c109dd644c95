"""What all tests share: a list of trusted code of their own, the level of the log, and what would only take time."""

from __future__ import annotations

import gc
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from rlcore.run import command

HOME = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make it before any process is started that inherits the environment; leave garbage until all is collected."""
    gc.disable()
    config.stash[HOME] = tempfile.TemporaryDirectory(prefix="rlcore-config-")
    os.environ["RLCORE_CONFIG_HOME"] = config.stash[HOME].name
    # of the process that starts the others, which inherit it: what they build is built once; see tests/fresh_venv.py
    os.environ.setdefault("RLCORE_TEST_SHARED", os.path.join(config.stash[HOME].name, "shared"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove it."""
    config.stash[HOME].cleanup()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a slow test where only those are run: to import them all takes half a minute."""
    if config.option.markexpr != "slow" or not collection_path.name.startswith("test_"):
        return None
    return True if "slow" not in collection_path.read_text().lower() else None


def pytest_collection_finish() -> None:
    """Let no look for garbage go through what was imported and collected, which stays to the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a GPU where there is none."""
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


@pytest.fixture(scope="session", autouse=True)
def _no_pictures() -> Iterator[Callable[[Any], str | None]]:
    """Let no run draw its curves, which takes longer than it; yield what draws them."""
    drawing = command._curves
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "_curves", lambda run: None)
        yield drawing


@pytest.fixture
def pictures(_no_pictures: Callable[[Any], str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each run draw its curves at its end, as those of a user do."""
    monkeypatch.setattr(command, "_curves", _no_pictures)


@pytest.fixture(autouse=True)
def _log_level() -> None:
    """Begin with the level of a new process: a command sets it, such as by `--quiet`, in a fixture of a module too."""
    root = logging.getLogger()
    if root.level != logging.WARNING:  # to set it goes through all loggers, which takes longer than many a test
        root.setLevel(logging.WARNING)
