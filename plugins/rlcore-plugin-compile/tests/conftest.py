"""Fixtures of tests that compile; those of the tiny run are the core's."""

import pytest
import torch

from tests.conftest import build, workdir, write_config

__all__ = ["build", "workdir", "write_config"]


@pytest.fixture
def fresh_compiler():
    """Forget what other tests compiled."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
