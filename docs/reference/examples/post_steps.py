from rlcore import hookimpl


class KeepLastBatch:
    """Keeps a copy of the latest batch."""

    def __init__(self):
        self.batch = None

    @hookimpl
    def post_steps(self, batch):
        self.batch = batch.clone()
