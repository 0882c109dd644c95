import shutil
from pathlib import Path

from rlcore import hookimpl


class Copies:
    """Keeps a copy of every checkpoint."""

    @hookimpl
    def checkpoint_saved(self, path):
        shutil.copytree(path, Path("copies") / path.name)
