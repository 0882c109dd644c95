import torch

from rlcore import hookimpl


class ErrorPerEpoch:
    """Keeps the critic's mean error after each epoch."""

    def __init__(self):
        self.errors = []

    @hookimpl
    def post_epoch(self, batch, learner):
        with torch.no_grad():
            error = learner.model.critic(batch["observation"]) - batch["value_target"]
        self.errors.append(error.abs().mean())
