"""PQN: Q-learning in parallel envs, without a target network and without replay."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("loss", "pqn", f"{__name__}.loss:PQNLoss", summary="the error of action values from Q(lambda)"),
        Component(
            "model",
            "normed-q-network",
            f"{__name__}.model:NormedQNetworkModel",
            summary="action values by layers with layer norm, which need no target",
        ),
        Component(
            "model",
            "recurrent-normed-q-network",
            f"{__name__}.recurrent:RecurrentNormedQNetworkModel",
            summary="the same with an LSTM or a GRU",
        ),
    ]
