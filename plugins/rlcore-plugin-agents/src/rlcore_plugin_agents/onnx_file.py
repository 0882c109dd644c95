"""The format onnx: a graph that runs in ONNX Runtime and in other languages, without torch."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from rlcore.envs import Packed
from rlcore.errors import FROM_OUTSIDE, ConfigError, MissingPluginError, StorageError, describe
from rlcore.run import AgentParts
from rlcore_plugin_agents.agent import Agent
from rlcore_plugin_agents.notes import KEY, notes_of, read_notes
from rlcore_plugin_agents.program import INPUTS, exported_program, state_of
from rlcore_plugin_agents.program_agent import program_agent

if TYPE_CHECKING:
    from torch import Tensor

_OUTPUTS: Final = ("action", "next_state")
_TALKING: Final = ("torch.onnx", "onnxscript", "onnx_ir")


def write(parts: AgentParts, path: Path) -> None:
    """Write the graph of an agent: input `observation`, output `action`, both with the envs in front.

    One with a state has the inputs `state` and `first` too, and the output `next_state`.

    Raises:
        ConfigError: a part cannot be exported.
        MissingPluginError: the packages of ONNX are not installed.
    """
    if isinstance(parts.spec.observation_space, Packed):
        raise ConfigError(
            f"env {parts.spec.id!r} has observations that are dicts, which the format onnx cannot take; the formats "
            "torch-export and safetensors can"
        )
    try:
        import onnx  # noqa: F401
        import onnxscript  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401
    except ImportError as error:
        raise _missing("writing ONNX", error) from error
    state = state_of(parts)
    notes, program = notes_of(parts, state), exported_program(parts)
    inputs, outputs = (INPUTS, _OUTPUTS) if state else (INPUTS[:1], _OUTPUTS[:1])
    try:
        with _quiet():
            graph = torch.onnx.export(program, (), input_names=inputs, output_names=outputs, dynamo=True, verbose=False)
    except FROM_OUTSIDE:
        raise
    except Exception as error:
        reason = describe(error).strip().splitlines()[0]
        raise ConfigError(
            f"{parts.labels['model']} cannot be exported: ONNX has no operation for a part of it ({reason}); the "
            "format torch-export may"
        ) from error
    assert graph is not None  # of `dynamo=True`
    graph.model.metadata_props[KEY] = notes
    graph.save(str(path))


def load(path: Path, device: torch.device, seed: int, trust: bool) -> Agent:
    """Return the agent of a graph, run by ONNX Runtime; it runs no code of the file, so there is nothing to trust.

    Raises:
        ConfigError: ONNX Runtime has no such device.
        MissingPluginError: ONNX Runtime is not installed.
        StorageError: the file cannot be read.
    """
    try:
        import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise _missing("running ONNX", error) from error
    provider = f"{device.type.upper()}ExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise ConfigError(f"ONNX Runtime has no {provider} here; use device = 'cpu', or pip install onnxruntime-gpu")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=[provider])
    except Exception as error:  # its errors derive from nothing of their own
        raise StorageError(f"{str(path)!r} cannot be read as ONNX: {describe(error)}") from error
    notes = read_notes(path, session.get_modelmeta().custom_metadata_map.get(KEY))

    outputs = _OUTPUTS if "state" in notes else _OUTPUTS[:1]

    def run(*tensors: Tensor) -> Any:
        given = {name: tensor.numpy() for name, tensor in zip(INPUTS, tensors, strict=False)}
        found = [torch.from_numpy(array) for array in session.run(outputs, given)]
        return tuple(found) if "state" in notes else found[0]

    return program_agent(path, notes, run, torch.device("cpu"), seed)


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what the exporter says of its own steps, in warnings and on loggers."""
    loggers = [logging.getLogger(name) for name in _TALKING]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _missing(what: str, error: ImportError) -> MissingPluginError:
    return MissingPluginError(f"{what} needs a package that is not installed ({error}): pip install 'rlcore[onnx]'")
