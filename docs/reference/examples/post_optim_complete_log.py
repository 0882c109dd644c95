from rlcore import Last, hookimpl


class MeanLoss:
    """Logs the mean loss of each iteration, and how many steps were taken so far."""

    @hookimpl
    def post_optim_complete_log(self, updates, losses):
        return {"mean_critic_loss": losses["loss_critic"], "steps": Last(updates)}
