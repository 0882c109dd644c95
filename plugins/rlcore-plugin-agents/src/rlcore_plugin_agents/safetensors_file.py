"""The format safetensors: the weights and the state of the transforms, with the config that says what they are of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch

from rlcore.config import note_written
from rlcore.errors import MissingPluginError, StorageError, describe
from rlcore.run import AgentBuilder, AgentParts, Saved
from rlcore.state import flatten, unflatten
from rlcore_plugin_agents.agent import Agent
from rlcore_plugin_agents.notes import KEY, notes_of, read_notes

# of the config: what an agent is built from
_SECTIONS: Final = ("run", "plugins", "env", "transform", "model")


def write(parts: AgentParts, path: Path) -> None:
    """Write weights and statistics under their names in a checkpoint; the rest is JSON in the metadata `rlcore`.

    Raises:
        MissingPluginError: safetensors is not installed.
    """
    try:
        from safetensors.torch import save
    except ImportError as error:
        raise _missing(error) from error
    tensors: dict[str, torch.Tensor] = {}
    kept = {name for name in parts.saved.states if name in ("model", "progress") or name.startswith("transform.")}
    tree = {name: flatten(parts.saved.states[name], name, tensors) for name in sorted(kept)}
    config = {name: parts.saved.config[name] for name in _SECTIONS if name in parts.saved.config}
    notes = notes_of(parts, {"config": config, "state": tree})
    note_written(config, path)
    path.write_bytes(save({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, {KEY: notes}))


def load(path: Path, device: torch.device, seed: int, trust: bool) -> Agent:
    """Return the agent of a file.

    Raises:
        UntrustedError: its config names code and was not written here, and is not trusted.
        MissingPluginError: safetensors is not installed.
        StorageError: the file cannot be read.
    """
    parts = AgentBuilder(_read(path, trust), device).build()
    model = parts.model
    return Agent(parts.spec, parts.transforms, model.policy, device, seed, parts.saved.frames, network=model)


def _read(path: Path, trust: bool) -> Saved:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise _missing(error) from error
    try:
        with safe_open(path, "pt") as stream:
            text = (stream.metadata() or {}).get(KEY)
            tensors: dict[str, torch.Tensor] = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise StorageError(f"{str(path)!r} cannot be read as safetensors: {describe(error)}") from error
    notes: dict[str, Any] = read_notes(path, text)
    try:
        states, config = unflatten(notes["state"], tensors), notes["config"]
        _ = config["run"], config["model"]["use"]
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise StorageError(f"{str(path)!r} does not say of which parts its weights are: {describe(error)}") from None
    return Saved.of(path, int(notes["frames"]), states, config, notes["env"], trust)


def _missing(error: ImportError) -> MissingPluginError:
    return MissingPluginError(
        f"the format safetensors needs a package that is not installed ({error}): pip install 'rlcore[safetensors]'"
    )
