"""Q-learning for rlcore: Q-networks that explore epsilon-greedily, and the losses DQN, C51, QR-DQN and R2D2."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "model", "q-network", f"{__name__}.model:QNetworkModel", summary="an MLP of action values, its target"
        ),
        Component(
            "model",
            "recurrent-q-network",
            f"{__name__}.recurrent:RecurrentQNetworkModel",
            summary="action values behind an LSTM or a GRU, their target",
        ),
        Component("loss", "dqn", f"{__name__}.loss:DQNLoss", summary="the error of action values; DQN and double DQN"),
        Component("loss", "c51", f"{__name__}.distributional:C51Loss", summary="the error of distributions of values"),
        Component(
            "loss", "qr-dqn", f"{__name__}.distributional:QuantileLoss", summary="the error of quantiles of values"
        ),
        Component("loss", "r2d2", f"{__name__}.r2d2:R2D2Loss", summary="the error of action values over sequences"),
    ]
