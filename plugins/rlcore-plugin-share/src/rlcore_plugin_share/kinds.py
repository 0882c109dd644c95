"""The kinds of what can be pushed, and which files belong to each: data alone, nothing that Python imports."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlcore.checkpoints import MANIFEST as CHECKPOINT_MANIFEST
from rlcore.errors import ConfigError
from rlcore.run_folder import CHECKPOINTS, CONFIG_FILE, ID_FILE

PAGE: Final = "README.md"
PROOF: Final = "proof.json"
REPORT: Final = "report.html"
# made by a push, whatever the folder has under these names
MADE: Final = (PROOF, REPORT)
POLICY: Final = r"[^/]+\.(?:pt2|onnx|safetensors)"
_DATASET_METADATA: Final = "metadata.json"
# an upload that waits would be sent by whoever pulls it; what is hidden belongs to one machine
_LEFT_BEHIND: Final = re.compile(r"(?:^|/)(?:\.[^/]*|spool|wandb|mlruns|__pycache__)(?:/|$)")
_CHECKPOINT: Final = rf"{CHECKPOINTS}/[0-9]+-[0-9a-f]+/[^/]+"


@dataclass(frozen=True)
class Kind:
    """What can be pushed.

    Attributes:
        name: for people.
        pattern: of the paths of its files.
        marks: files without which it is none; empty where any one file is enough.
        described: for messages.
    """

    name: str
    pattern: re.Pattern[str]
    marks: tuple[str, ...]
    described: str

    def accepts(self, name: str) -> bool:
        """Return whether a file of that path belongs to it."""
        fits = name in (PAGE, *MADE) or self.pattern.fullmatch(name) is not None
        return fits and not _LEFT_BEHIND.search(name)

    def lacks(self, names: Container[str]) -> str:
        """Return the first file that it cannot be without and that is not there; else an empty text."""
        return next((mark for mark in self.marks if mark not in names), "")


def _pattern(*forms: str) -> re.Pattern[str]:
    return re.compile("|".join(forms))


KINDS: Final = {
    "run": Kind(
        "run",
        _pattern(
            rf"{re.escape(CONFIG_FILE)}|{ID_FILE}|{CHECKPOINTS}/latest",
            _CHECKPOINT,
            POLICY,
            rf"(?!{CHECKPOINTS}/).+\.(?:csv|json|jsonl|png|jpg|gif|mp4|txt|log|md)",
            r"(?:[^/]+/)*events\.out\.tfevents\.[^/]+",
        ),
        (CONFIG_FILE, ID_FILE),  # by the second one the core knows that the config is not the user's own
        f"a run folder, with {CONFIG_FILE} and {ID_FILE}",
    ),
    "policy": Kind("policy", _pattern(POLICY), (), "a file that rlcore export wrote: .pt2, .onnx or .safetensors"),
    "dataset": Kind(
        "dataset",
        _pattern(r".+\.(?:json|hdf5|arrow|parquet|md)"),
        (_DATASET_METADATA,),
        f"a dataset folder, with {_DATASET_METADATA}",
    ),
}


def kind_of(source: Path) -> Kind:
    """Return the kind of a folder or file.

    Raises:
        ConfigError: it is none.
    """
    if source.is_file() and KINDS["policy"].accepts(source.name):
        return KINDS["policy"]
    for kind in (KINDS["run"], KINDS["dataset"]):
        if all((source / mark).is_file() for mark in kind.marks):
            return kind
    what = "there is nothing" if not source.exists() else "it is none of these"
    if (source / CHECKPOINT_MANIFEST).is_file():
        what = "it is one checkpoint: name its run folder, with --at-checkpoint for the latest alone"
    described = "; ".join(kind.described for kind in KINDS.values())
    raise ConfigError(f"{str(source)!r} cannot be pushed, {what}; what can be is {described}")
