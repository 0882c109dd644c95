from rlcore import hookimpl


class LimitAdvantages:
    """Keeps a few outliers from deciding an epoch."""

    @hookimpl
    def pre_epoch(self, batch):
        advantage = batch.get("advantage", None)
        return None if advantage is None else batch.copy().set("advantage", advantage.clamp(-3, 3))
