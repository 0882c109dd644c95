from rlcore import hookimpl


class HowEpisodesEnd:
    """Logs the fractions of the steps that terminated and that truncated an episode."""

    @hookimpl
    def pre_steps_log(self, batch):
        following = batch["next"]
        return {"batch/terminated": following["terminated"].float(), "batch/truncated": following["truncated"].float()}
