"""An MLflow logger for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "logger",
            "mlflow",
            f"{__name__}.logger:build",
            config=f"{__name__}.logger:Config",
            summary="MLflow, a tracking server or a database file",
        )
    ]
