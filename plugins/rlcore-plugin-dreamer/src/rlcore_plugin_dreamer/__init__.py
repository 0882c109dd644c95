"""DreamerV3: a world model with categorical latents, and an actor and a critic that learn from what it imagines."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "model",
            "dreamer",
            f"{__name__}.model:DreamerModel",
            summary="a world model, an actor and a critic (Dreamer)",
        ),
        Component("loss", "dreamer", f"{__name__}.loss:DreamerLoss", summary="DreamerV3: world model, actor, critic"),
        Component(
            "optimizer", "laprop", f"{__name__}.laprop:LaProp", summary="LaProp behind adaptive gradient clipping"
        ),
    ]
