"""Offline learning for rlcore: the losses of behaviour cloning, TD3+BC, IQL and CQL, and the model of IQL."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("loss", "bc", f"{__name__}.cloning:CloningLoss", summary="behaviour cloning: the data's actions"),
        Component("loss", "td3-bc", f"{__name__}.td3_bc:TD3BCLoss", summary="TD3 whose actor stays near the data"),
        Component("loss", "iql", f"{__name__}.iql:IQLLoss", summary="implicit Q-learning: no action outside the data"),
        Component("loss", "cql", f"{__name__}.cql:CQLLoss", summary="SAC with values that are low outside the data"),
        Component("loss", "discrete-cql", f"{__name__}.discrete_cql:DiscreteCQLLoss", summary="DQN with such values"),
        Component("hook", "fqe", f"{__name__}.fqe:FittedQHook", summary="fitted Q evaluation: returns from data alone"),
        Component("model", "iql", f"{__name__}.model:IQLModel", summary="an actor, critics, and the value of states"),
    ]
