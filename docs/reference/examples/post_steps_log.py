from rlcore import hookimpl


class ExplainedVariance:
    """Logs how much of the value targets' variance the critic explains, on the bar too."""

    @hookimpl
    def post_steps_log(self, batch):
        target, error = batch["value_target"], batch["value_target"] - batch["state_value"]
        return {"explained_variance": 1 - error.var() / target.var(), "log_pbar": True}
