"""Fixtures of tests that compile."""

import pytest
import torch


@pytest.fixture
def fresh_compiler():
    """Forget what other tests compiled."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
