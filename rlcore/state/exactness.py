"""The domain of a run: a record of the machine and the libraries that its bits depend on.

In the same domain a resumed run equals an uninterrupted one, bit for bit. In another it goes on, marked as inexact.
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
    """Return the domain of this process: what the bits depend on besides the config and the versions of plugins."""
    record = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": str(threads),  # a sum that is split between threads is rounded otherwise
        "device": device.type,
    }
    if device.type == "cuda":
        record["device"] = torch.cuda.get_device_name(device)
        record["cuda"] = str(torch.version.cuda)
        record["deterministic"] = str(torch.are_deterministic_algorithms_enabled())
    return record


def differences(there: Mapping[str, str], here: Mapping[str, str], what: str = "") -> list[str]:
    """Return a line for each entry that differs between a checkpoint and this process.

    Args:
        there: entries of the checkpoint.
        here: entries of this process.
        what: text before each name.
    """
    names = dict.fromkeys((*there, *here))
    return [
        f"{what}{name} is {here.get(name, 'absent')} here, {there.get(name, 'absent')} in the checkpoint"
        for name in names
        if there.get(name) != here.get(name)
    ]


def outside(manifest: Mapping[str, Any], domain: Mapping[str, str], versions: Mapping[str, str]) -> list[str]:
    """Return the reasons why a resume in this process is not exact.

    Args:
        manifest: of the checkpoint.
        domain: of this process.
        versions: of the distributions that this process uses.
    """
    # a distribution that one side lacks is a difference in the config, which is compared elsewhere, or only watches
    common = manifest["versions"].keys() & versions.keys()
    recorded, current = ({n: v for n, v in side.items() if n in common} for side in (manifest["versions"], versions))
    return [
        *differences(without_sources(manifest["domain"]), without_sources(domain)),
        *source_differences(manifest["domain"], domain),
        *differences(recorded, current, "the version of "),
    ]


def inexact_parts(parts: Mapping[str, Any]) -> list[str]:
    """Return the reasons that `inexact()` of the parts gives against an exact resume."""
    reasons = [with_defaults(part, Part).inexact() for part in parts.values()]
    return [reason for reason in reasons if reason]


def unrestored_parts(parts: Mapping[str, Any]) -> list[str]:
    """Return what `load_state_dict` of the parts could not restore, as their `unrestored()` says."""
    reasons = [with_defaults(part, Part).unrestored() for part in parts.values()]
    return [reason for reason in reasons if reason]


def inexact_device(device: torch.device) -> list[str]:
    """Return the reason why a run on this device does not repeat bit for bit, if there is one."""
    if device.type == "cuda" and not torch.are_deterministic_algorithms_enabled():
        return ["device cuda: torch's deterministic algorithms are off; turn them on with [run] deterministic = true"]
    if device.type == "mps":
        return ["device mps: torch does not promise the same bits twice there"]
    return []


def check_owners(writers: Mapping[str, str], providers: Mapping[str, str]) -> None:
    """Refuse to restore a state into a component of another distribution.

    Args:
        writers: component name to the distribution that wrote its state.
        providers: component name to the distribution that provides it here.

    Raises:
        StorageError: they differ for a component; the message names both.
    """
    for line in changed_owners(writers, providers):
        raise StorageError(
            f"{line}; install what wrote it again, or go on with the other one and without the promise of an exact "
            "resume: --accept-changes"
        )


def changed_owners(writers: Mapping[str, str], providers: Mapping[str, str]) -> list[str]:
    """Return a line for each component that another distribution provides than wrote its state."""
    return [
        f"{name} was written by {writers[name]}, and is provided by {owner} here"
        for name, owner in providers.items()
        if owner and writers.get(name) and not same_owner(writers[name], owner)
    ]
