"""Envs that are written in JAX: many at once on the device of the run, as tensors that share its memory."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "env",
            "jax",
            f"{__name__}.env:make",
            f"{__name__}.env:Config",
            "envs of gymnax, Brax and your own in JAX, as tensors on the device of the run",
        ),
    ]
