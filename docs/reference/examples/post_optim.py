import torch

from rlcore import hookimpl


class AveragedWeights:
    """Keeps a slow average of the weights."""

    def __init__(self):
        self.average = None

    @hookimpl
    def post_optim(self, learner):
        weights = [parameter.detach() for parameter in learner.model.parameters()]
        if self.average is None:
            self.average = [weight.clone() for weight in weights]
        torch._foreach_lerp_(self.average, weights, 0.01)

    def state_dict(self):
        return {"average": self.average}

    def load_state_dict(self, state):
        self.average = state["average"]
