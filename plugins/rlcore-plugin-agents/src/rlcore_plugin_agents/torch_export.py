"""The format torch-export: a program of `torch.export`, which runs without rlcore and without the model's code."""

from __future__ import annotations

from pathlib import Path

import torch

from rlcore.config import check_file, note_file
from rlcore.errors import StorageError, describe
from rlcore.run import AgentParts
from rlcore_plugin_agents.agent import Agent
from rlcore_plugin_agents.notes import KEY, notes_of, read_notes
from rlcore_plugin_agents.program import exported_program, state_of
from rlcore_plugin_agents.program_agent import program_agent

_FILE = f"{KEY}.json"


def write(parts: AgentParts, path: Path) -> None:
    """Write the program of an agent, with what it is for in the extra file `rlcore.json`.

    Raises:
        ConfigError: a part cannot be exported.
    """
    notes = notes_of(parts, state_of(parts))
    with path.open("wb") as stream:
        torch.export.save(exported_program(parts), stream, extra_files={_FILE: notes})
    note_file(path)


def load(path: Path, device: torch.device, seed: int, trust: bool) -> Agent:
    """Return the agent of a program; a part of it is unpickled, which may run anything.

    Raises:
        UntrustedError: the file was not written here, and is not trusted.
        StorageError: it cannot be read.
    """
    check_file(path, trust)
    files = {_FILE: ""}
    try:
        with path.open("rb") as stream:
            program = torch.export.load(stream, extra_files=files)
        if device.type != "cpu":
            from torch.export.passes import move_to_device_pass

            program = move_to_device_pass(program, device)
        module = program.module()
    except Exception as error:  # torch's own errors are of many kinds
        raise StorageError(f"{str(path)!r} cannot be read as a program of torch.export: {describe(error)}") from error
    return program_agent(path, read_notes(path, files[_FILE]), module, device, seed)
