"""What the tests of W&B share: no account of others."""

import pytest


@pytest.fixture(autouse=True)
def no_key(monkeypatch, tmp_path):
    """No account of whoever runs the tests is used."""
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
