"""Recurrent networks for policies with a memory: an LSTM or a GRU behind an encoder and before the heads."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("model", "lstm", f"{__name__}.model:LSTMModel", summary="parts that remember by one LSTM"),
        Component("model", "gru", f"{__name__}.model:GRUModel", summary="parts that remember by one GRU"),
    ]
