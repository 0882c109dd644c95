"""DQN for rlcore: Q-networks with an epsilon-greedy policy, the loss, a replay buffer, and the target's updates."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("model", "q-networks", f"{__name__}.model:QNetworks", summary="a Q-network and its target"),
        Component("loss", "dqn", f"{__name__}.loss:DQNLoss", summary="the loss of DQN and double DQN"),
        Component("buffer", "replay", f"{__name__}.replay:Replay", summary="a ring of transitions, drawn uniformly"),
        Component("hook", "target-update", f"{__name__}.target:TargetUpdate", summary="copies the Q-network"),
    ]
