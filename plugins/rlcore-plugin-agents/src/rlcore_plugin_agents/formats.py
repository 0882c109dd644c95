"""The formats of exported agents: how each is called, which suffix its files have, what writes and reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from rlcore.errors import ConfigError
from rlcore.run import AgentParts
from rlcore_plugin_agents import onnx_file, safetensors_file, torch_export
from rlcore_plugin_agents.agent import Agent


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes:
        suffix: of its files.
        write: writes an agent, whose model is on the CPU, into a file.
        load: returns the agent of a file, on a device, with a seed; and whether code runs that was not written here.
    """

    suffix: str
    write: Callable[[AgentParts, Path], None]
    load: Callable[[Path, torch.device, int, bool], Agent]


FORMATS: Final = {
    "torch-export": Format(".pt2", torch_export.write, torch_export.load),
    "onnx": Format(".onnx", onnx_file.write, onnx_file.load),
    "safetensors": Format(".safetensors", safetensors_file.write, safetensors_file.load),
}


def format_of(path: Path) -> str:
    """Return the format of a file, by its suffix.

    Raises:
        ConfigError: it has none of them.
    """
    for name, known in FORMATS.items():
        if path.suffix == known.suffix:
            return name
    suffixes = ", ".join(known.suffix for known in FORMATS.values())
    raise ConfigError(f"{str(path)!r} is no exported agent: those have one of the suffixes {suffixes}")
