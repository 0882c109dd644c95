"""Checks that a state fits its component: shapes, dtypes and counts.

torch compares the number of parameters alone, and a fused kernel with moments of a wrong shape reads foreign memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from rlcore.errors import StorageError
from rlcore.types.hook_parts import HookObject
from rlcore.types.part import with_defaults

# entries of a parameter group that are no hyperparameters
_NOT_SET: Final = ("params", "param_names")


def check(component: Any, state: Any, closely: bool = False) -> None:
    """Refuse a state that does not fit, before `load_state_dict` of the component is called.

    Args:
        component: as it was built.
        state: from a checkpoint.
        closely: compare the arrays of other components too, as after a change of the config. Without a change their
            arrays may have grown with the data, such as those of a hook.

    Raises:
        StorageError: the message says what differs.
    """
    if isinstance(component, torch.optim.Optimizer):
        check_state(component, state)
    elif isinstance(component, nn.Module):
        _refuse(_differing(component.state_dict(), state))
    elif closely:
        _refuse(line for line in _differing(component.state_dict(), state, empty_may_grow=True))


def check_array(name: str, saved: Any, shape: Sequence[int], what: str = "") -> None:
    """Refuse an array of a wrong shape.

    Args:
        name: of the array.
        saved: from a checkpoint; None fits.
        shape: the right one.
        what: the keys of the config that decide the shape, for the message.

    Raises:
        StorageError: the message names both shapes.
    """
    if saved is not None and tuple(saved.shape) != tuple(shape):
        follows = f" ({what})" if what else ""
        raise StorageError(f"{name} is {list(shape)} here, {list(saved.shape)} in the checkpoint{follows}")


def _refuse(lines: Iterator[str]) -> None:
    differences = list(lines)
    if differences:
        raise StorageError(first_few(differences, ", "))


def _differing(here: Any, there: Any, path: str = "", empty_may_grow: bool = False) -> Iterator[str]:
    """Yield a line for each tensor or array with another shape or dtype at the same path."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for key in here:
            if key in there:
                yield from _differing(here[key], there[key], f"{path}.{key}".lstrip("."), empty_may_grow)
    elif isinstance(here, list | tuple) and isinstance(there, list | tuple) and len(here) == len(there):
        for number, pair in enumerate(zip(here, there, strict=True)):
            yield from _differing(*pair, f"{path}.{number}".lstrip("."), empty_may_grow)
    elif isinstance(here, Tensor | np.ndarray) and isinstance(there, Tensor | np.ndarray):
        # a lazy parameter has no shape yet; an array of at most one element is a placeholder until the first data
        if (isinstance(here, Tensor) and is_lazy(here)) or (empty_may_grow and prod(here.shape) <= 1):
            return
        if tuple(here.shape) != tuple(there.shape):
            yield f"size mismatch: {path} is {list(here.shape)} here, {list(there.shape)} in the checkpoint"
        elif _dtype(here) != _dtype(there):
            yield f"dtype mismatch: {path} is {_dtype(here)} here, {_dtype(there)} in the checkpoint"


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def optimizer_of(part: Any) -> Any:
    """Return the optimizer of a hook, or the part itself where it has none."""
    optimizer = with_defaults(part, HookObject).optimizer
    return part if optimizer is None else optimizer


def check_state(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Refuse a state of an optimizer that does not fit its parameters.

    Args:
        optimizer: as it was built.
        state: the `state_dict` of such an optimizer.

    Raises:
        StorageError: the message says what differs.
    """
    reasons = misfits(optimizer, state)
    if reasons:
        raise StorageError(first_few(reasons, "; "))


def misfits(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> list[str]:
    """Return a line for each difference between a state and the parameters of an optimizer."""
    if not isinstance(state, Mapping) or "state" not in state or "param_groups" not in state:
        return []  # the optimizer has a format of its own, and checks it itself
    groups, saved = optimizer.param_groups, state["param_groups"]
    counts = [[len(group["params"]) for group in side] for side in (groups, saved)]
    if counts[0] != counts[1]:
        return [f"it has {_counted(counts[0])} here, {_counted(counts[1])} in the checkpoint"]
    reasons = [*_of_another_kind(optimizer, saved), *_renamed(groups, saved)]
    return [*reasons, *_misshapen(optimizer, state)] if _of_torch(optimizer) else reasons


def first_few(reasons: list[str], between: str) -> str:
    """Return the first three reasons in one line, and the number of the others."""
    more = [f"and {len(reasons) - 3} more"] if len(reasons) > 3 else []
    return between.join([*reasons[:3], *more])


def with_hyperparameters(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state of an optimizer with its hyperparameters replaced by those of the config."""
    if len(state["param_groups"]) != len(optimizer.param_groups):
        return dict(state)
    groups = [
        {**saved, **{name: value for name, value in built.items() if name not in _NOT_SET}}
        for saved, built in zip(state["param_groups"], optimizer.param_groups, strict=True)
    ]
    return {**state, "param_groups": groups}


def _counted(counts: list[int]) -> str:
    groups = "" if len(counts) == 1 else f" in {len(counts)} groups"
    return f"{sum(counts)} parameters{groups}"


def _of_another_kind(optimizer: torch.optim.Optimizer, saved: list[Any]) -> list[str]:
    """Return a line where both sides have hyperparameters of their own; another version of torch only adds some."""
    here = {name for group in optimizer.param_groups for name in group}
    there = {name for group in saved for name in group}
    missing, foreign = sorted(set(optimizer.defaults) - there), sorted(there - here - {"initial_lr", *_NOT_SET})
    if not (missing and foreign):
        return []
    kind = type(optimizer).__name__
    return [f"it is of another kind of optimizer: {kind} has {', '.join(missing)}, the checkpoint {', '.join(foreign)}"]


def _renamed(groups: list[Any], saved: list[Any]) -> list[str]:
    """Return a line for each parameter of another name, where both sides have names: shapes may be alike."""
    reasons = []
    for here, there in zip(groups, saved, strict=True):
        pairs = zip(here.get("param_names", ()), there.get("param_names", ()), strict=False)
        reasons += [
            f"parameter {ours!r} here is {theirs!r} in the checkpoint" for ours, theirs in pairs if ours != theirs
        ]
    return reasons


def _of_torch(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether an optimizer has a class of `torch.optim` among its bases.

    The state of any other may hold projections, tables of quantiles or preconditioners of any shape.
    """
    kinds = type(optimizer).__mro__
    return any(kind.__module__.startswith("torch.optim") for kind in kinds[: kinds.index(torch.optim.Optimizer)])


def _misshapen(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> Iterator[str]:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    numbers = [number for group in state["param_groups"] for number in group["params"]]
    named = [name for group in optimizer.param_groups for name in group.get("param_names", ())]
    fused = [("fused" in group) for group in optimizer.param_groups for _ in group["params"]]
    total = sum(parameter.numel() for parameter in parameters)
    for place, number in enumerate(numbers):
        for name, value in dict(state["state"].get(number) or {}).items():
            wrong = _wrong(name, value, parameters[place], fused[place], total)
            if wrong:
                yield f"{name} of {named[place] if place < len(named) else f'parameter {place}'} is {wrong}"
    unknown = [number for number in state["state"] if isinstance(number, int) and number not in numbers]
    if unknown:
        yield f"the checkpoint has moments of {len(unknown)} parameters that its groups do not name"


def _wrong(name: str, value: Any, parameter: Tensor, fused: bool, total: int) -> str:
    """Return what is wrong with one entry in the state of a parameter; empty where it fits.

    Moments have the shape and dtype of their parameter. Without a fused kernel they may also be smaller, as the rows
    and columns of Adafactor, or flat over all parameters, as of LBFGS.
    """
    if not isinstance(value, Tensor):
        return ""
    if name == "step":
        return "" if value.numel() == 1 else f"{list(value.shape)} in the checkpoint, and should be one number"
    of_type = value.dtype == parameter.dtype or not value.is_floating_point()
    of_form = value.shape == parameter.shape
    if not fused:
        of_type, of_form = True, of_form or value.shape == (total,) or _fits_into(value.shape, parameter.shape)
    if of_type and of_form:
        return ""
    return f"{_form(parameter)} here, {_form(value)} in the checkpoint"


def _fits_into(shape: torch.Size, target: torch.Size) -> bool:
    """Return whether a tensor can be broadcast to another shape."""
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(size in (1, full) for size, full in pairs)


def _form(tensor: Tensor) -> str:
    return f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
