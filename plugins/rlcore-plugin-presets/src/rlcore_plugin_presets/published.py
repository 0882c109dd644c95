"""Which presets are published, whether their plugins are installed or not.

`published.json` is written by `docs/reference/generate.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("published.json")


def distributions() -> dict[str, str]:
    """Return the distribution of each published preset, and of each algorithm that has some."""
    return dict(json.loads(FILE.read_text()))
