from pathlib import Path

from rlcore import hookimpl


class LogFile:
    """Keeps a file open as long as the run goes on."""

    def __init__(self):
        self.stream = None

    @hookimpl
    def setup(self):
        self.stream = Path("run.log").open("w")

    @hookimpl
    def post_steps(self, trainer):
        self.stream.write(f"{trainer.progress.frames}\n")

    @hookimpl
    def shutdown(self):
        if self.stream is not None:
            self.stream.close()
