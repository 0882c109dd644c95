from pathlib import Path

from rlcore import hookimpl


class NoteOfFailure:
    """Writes down what ended the run."""

    @hookimpl
    def on_exception(self, error, trainer):
        Path("failed.txt").write_text(f"frame {trainer.progress.frames}: {error!r}\n")
