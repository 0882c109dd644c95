"""What the tests of MLflow share: no server of others, and a database that has its tables."""

import pytest


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    """No server of whoever runs the tests is used."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """A database with its tables; making those takes seconds."""
    from mlflow import MlflowClient  # imported late: every run of tests reads this file, and waits a second for that

    file = tmp_path_factory.mktemp("empty") / "mlflow.db"
    MlflowClient(f"sqlite:///{file}").search_experiments()
    return file.read_bytes()
