"""What losses, metrics and minibatches come in: mappings by name, and TensorDicts, which are no `Mapping`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_mapping(value: object) -> bool:
    """Return whether a value has entries by name.

    It is asked for every minibatch, for which `isinstance` with a protocol, or `offers`, would be slow.
    """
    return hasattr(value, "items")


def detached(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without their graphs; numbers have none, and stay as they are."""
    return {name: value.detach() if hasattr(value, "detach") else value for name, value in values.items()}
