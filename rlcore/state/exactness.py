"""What the bits of a run depend on, and how two such records differ.

Inside one domain a resumed run equals an uninterrupted one. Outside it the run goes on, and says that it is not exact.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import torch

from rlcore.errors import StorageError
from rlcore.plugins.known import same_owner
from rlcore.state.sources import source_differences, without_sources
from rlcore.types.part import Part, with_defaults


def domain(device: torch.device, threads: int) -> dict[str, str]:
    """Return what the bits depend on besides the config and the versions of plugins."""
    record = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": str(threads),
        "device": device.type,
    }
    if device.type == "cuda":
        record["device"] = torch.cuda.get_device_name(device)
        record["cuda"] = str(torch.version.cuda)
        record["deterministic"] = str(torch.are_deterministic_algorithms_enabled())
    return record


def differences(there: Mapping[str, str], here: Mapping[str, str], what: str = "") -> list[str]:
    """Return a reason for each entry that differs between a checkpoint and this process.

    Args:
        there: the record of the checkpoint.
        here: the record of this process.
        what: put before each name.
    """
    names = dict.fromkeys((*there, *here))
    return [
        f"{what}{name} is {here.get(name, 'absent')} here, {there.get(name, 'absent')} in the checkpoint"
        for name in names
        if there.get(name) != here.get(name)
    ]


def outside(manifest: Mapping[str, Any], domain: Mapping[str, str], versions: Mapping[str, str]) -> list[str]:
    """Return why this process does not go on exactly from a checkpoint that another one may have written.

    Args:
        manifest: of the checkpoint.
        domain: of this process.
        versions: of what this process uses; what came or went is a difference in the config, or only watches.
    """
    common = manifest["versions"].keys() & versions.keys()
    recorded, current = ({n: v for n, v in side.items() if n in common} for side in (manifest["versions"], versions))
    return [
        *differences(without_sources(manifest["domain"]), without_sources(domain)),
        *source_differences(manifest["domain"], domain),
        *differences(recorded, current, "the version of "),
    ]


def inexact_parts(parts: Mapping[str, Any]) -> list[str]:
    """Ask every part that has a method `inexact()` why a resume would not be exact; it returns a reason or None."""
    reasons = [with_defaults(part, Part).inexact() for part in parts.values()]
    return [reason for reason in reasons if reason]


def unrestored_parts(parts: Mapping[str, Any]) -> list[str]:
    """Ask every part that has a method `unrestored()` what its last `load_state_dict` could not bring back."""
    reasons = [with_defaults(part, Part).unrestored() for part in parts.values()]
    return [reason for reason in reasons if reason]


def inexact_device(device: torch.device) -> list[str]:
    """Return why a run on this device does not repeat to the bit, if so."""
    if device.type == "cuda" and not torch.are_deterministic_algorithms_enabled():
        return ["device cuda: torch's deterministic algorithms are off; turn them on with [run] deterministic = true"]
    if device.type == "mps":
        return ["device mps: torch does not promise the same bits twice there"]
    return []


def check_owners(writers: Mapping[str, str], providers: Mapping[str, str]) -> None:
    """Refuse to give state to a component of another distribution than the one that wrote it.

    Raises:
        StorageError: a plugin was replaced by another that has its name; names both.
    """
    for line in changed_owners(writers, providers):
        raise StorageError(
            f"{line}; install what wrote it again, or go on with the other one and without the promise of an exact "
            "resume: --accept-changes"
        )


def changed_owners(writers: Mapping[str, str], providers: Mapping[str, str]) -> list[str]:
    """Return a line for each component of another distribution than the one that wrote its state."""
    return [
        f"{name} was written by {writers[name]}, and is provided by {owner} here"
        for name, owner in providers.items()
        if owner and writers.get(name) and not same_owner(writers[name], owner)
    ]
