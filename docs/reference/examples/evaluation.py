from rlcore import hookimpl


class StopWhenSolved:
    """Stops the run at a mean return of 475."""

    @hookimpl
    def evaluation(self, result, trainer):
        if result.mean_return >= 475:
            trainer.request_stop("solved")
