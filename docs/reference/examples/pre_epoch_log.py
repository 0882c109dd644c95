from rlcore import hookimpl


class FractionDone:
    """Logs the fraction of the steps that ended an episode."""

    @hookimpl
    def pre_epoch_log(self, batch):
        return {"fraction_done": batch["next", "done"].float().mean()}
