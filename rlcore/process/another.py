"""How another process of rlcore is started."""

from __future__ import annotations

import sys
from pathlib import Path


def rlcore_command() -> list[str]:
    """Return the command of another rlcore, which imports from the same places as this process.

    `python -m rlcore` imports from the working directory too, and the script `rlcore` does not.
    """
    as_module = Path(sys.argv[0]).name == "__main__.py"
    return [sys.executable, *([] if as_module else ["-P"]), "-m", "rlcore"]
