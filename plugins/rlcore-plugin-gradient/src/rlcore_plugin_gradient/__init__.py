"""The learner of a run from a config: gradient steps, with the optimizers of torch and schedules."""

from typing import Final

from rlcore import Component, hookimpl

_OPTIMIZERS: Final = f"{__name__}.optimizers"
# those of torch that work as they are, by their names there
_OF_TORCH: Final = ("Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "learner", "gradient", f"{__name__}.learner:GradientLearner", summary="gradient steps in this process"
        ),
        Component("optimizer", "adam", f"{_OPTIMIZERS}:adam", f"{_OPTIMIZERS}:AdamConfig", "Adam, fused"),
        Component("optimizer", "adamw", f"{_OPTIMIZERS}:adamw", f"{_OPTIMIZERS}:AdamConfig", "AdamW, fused"),
        Component("optimizer", "sgd", f"{_OPTIMIZERS}:sgd", f"{_OPTIMIZERS}:SGDConfig", "gradient descent"),
        *[
            Component("optimizer", name.lower(), f"{__name__}.torch_optimizers:{name}", summary=f"torch.optim.{name}")
            for name in _OF_TORCH
        ],
        Component("scheduler", "linear", f"{__name__}.schedules:Linear", summary="linear in frames"),
        Component("scheduler", "cosine", f"{__name__}.schedules:Cosine", summary="half a cosine in frames"),
    ]
