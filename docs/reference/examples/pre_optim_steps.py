import time

from rlcore import hookimpl


class TimeOfOptimisation:
    """Logs the seconds that optimisation took."""

    def __init__(self):
        self.began = 0.0

    @hookimpl
    def pre_optim_steps(self):
        self.began = time.perf_counter()

    @hookimpl
    def post_steps_log(self):
        return {"time/optimisation": time.perf_counter() - self.began}
