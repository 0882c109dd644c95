import torch

from rlcore import hookimpl


class ErrorAfterEpochs:
    """Logs the critic's mean error after each epoch."""

    @hookimpl
    def post_epoch_log(self, batch, learner):
        with torch.no_grad():
            error = learner.model.critic(batch["observation"]) - batch["value_target"]
        return {"critic_error": error.abs().mean()}
