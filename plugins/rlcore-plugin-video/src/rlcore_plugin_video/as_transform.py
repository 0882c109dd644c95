"""Recorders as transforms of TorchRL, for scripts that put them into an env of that library."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final, TypeVar

Recorder = TypeVar("Recorder")

_TRANSFORMS: Final = "rlcore_plugin_video.torchrl_recorders"


def as_transform(recorder: type[Recorder]) -> type[Recorder]:
    """Return the class of a recorder that is a transform of TorchRL too, if a script has imported `torchrl.envs`.

    Only the recorders themselves have one; a subclass stays what it is.
    """
    if "torchrl.envs" not in sys.modules or not recorder.__module__.startswith("rlcore_plugin_video."):
        return recorder
    transforms: dict[Any, type[Recorder]] = importlib.import_module(_TRANSFORMS).TRANSFORMS
    return transforms.get(recorder, recorder)
