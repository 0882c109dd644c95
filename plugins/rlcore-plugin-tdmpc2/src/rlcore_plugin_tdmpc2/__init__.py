"""TD-MPC2: a world model in a latent space without a decoder, and a planner over it that acts.

Only names are here: rlcore imports this module to list what it provides, so it imports nothing heavy.
"""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "model", "tdmpc2", f"{__name__}.model:TDMPC2Model", summary="a latent world model and the planner that acts"
        ),
        Component("loss", "tdmpc2", f"{__name__}.loss:TDMPC2Loss", summary="joint-embedding world model, MPPI's prior"),
    ]
