"""Whether a state fits the component that is to take it: form and count of what both have.

A kernel that is given moments of another shape than its parameters reads memory that is not theirs. torch looks at the
number of parameters alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from rlcore.errors import StorageError
from rlcore.types.hook_parts import HookObject
from rlcore.types.part import with_defaults

# entries of a group that are no hyperparameters
_NOT_SET: Final = ("params", "param_names")


def check(component: Any, state: Any, closely: bool = False) -> None:
    """Refuse a state that does not fit, before the component sees it.

    Args:
        component: as it was built.
        state: from a checkpoint.
        closely: also compare the arrays of components whose form follows from what they met, such as a hook's own.
            Where nothing has changed since, such a state may have grown.

    Raises:
        StorageError: says what differs.
    """
    if isinstance(component, torch.optim.Optimizer):
        check_state(component, state)
    elif isinstance(component, nn.Module):
        _refuse(_differing(component.state_dict(), state))
    elif closely:
        _refuse(line for line in _differing(component.state_dict(), state, empty_may_grow=True))


def check_array(name: str, saved: Any, shape: Sequence[int], what: str = "") -> None:
    """Refuse an array of another shape than the one that it is to fill.

    Args:
        name: of the array.
        saved: from a checkpoint; None fits.
        shape: that it is to have.
        what: the keys of the config that decide the shape.

    Raises:
        StorageError: names both shapes.
    """
    if saved is not None and tuple(saved.shape) != tuple(shape):
        follows = f" ({what})" if what else ""
        raise StorageError(f"{name} is {list(shape)} here, {list(saved.shape)} in the checkpoint{follows}")


def _refuse(lines: Iterator[str]) -> None:
    differences = list(lines)
    if differences:
        raise StorageError(first_few(differences, ", "))


def _differing(here: Any, there: Any, path: str = "", empty_may_grow: bool = False) -> Iterator[str]:
    """Yield a line for each tensor or array that has another form at the same place."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for key in here:
            if key in there:
                yield from _differing(here[key], there[key], f"{path}.{key}".lstrip("."), empty_may_grow)
    elif isinstance(here, list | tuple) and isinstance(there, list | tuple) and len(here) == len(there):
        for number, pair in enumerate(zip(here, there, strict=True)):
            yield from _differing(*pair, f"{path}.{number}".lstrip("."), empty_may_grow)
    elif isinstance(here, Tensor | np.ndarray) and isinstance(there, Tensor | np.ndarray):
        if (isinstance(here, Tensor) and is_lazy(here)) or (empty_may_grow and _size(here) <= 1):
            return
        if tuple(here.shape) != tuple(there.shape):
            yield f"size mismatch: {path} is {list(here.shape)} here, {list(there.shape)} in the checkpoint"
        elif _dtype(here) != _dtype(there):
            yield f"dtype mismatch: {path} is {_dtype(here)} here, {_dtype(there)} in the checkpoint"


def _size(value: Any) -> int:
    return int(value.numel()) if isinstance(value, Tensor) else int(value.size)


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def optimizer_of(part: Any) -> Any:
    """Return the optimizer of a hook that owns one, or else the part itself."""
    optimizer = with_defaults(part, HookObject).optimizer
    return part if optimizer is None else optimizer


def check_state(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Refuse a state whose tensors do not fit the parameters.

    Args:
        optimizer: that is to take the state.
        state: what the `state_dict` of such an optimizer returned.

    Raises:
        StorageError: says what differs.
    """
    reasons = misfits(optimizer, state)
    if reasons:
        raise StorageError(first_few(reasons, "; "))


def misfits(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> list[str]:
    """Return a line for each way in which a state does not fit the parameters of an optimizer."""
    if not isinstance(state, Mapping) or "state" not in state or "param_groups" not in state:
        return []  # of an optimizer with a form of its own, which checks it
    groups, saved = optimizer.param_groups, state["param_groups"]
    counts = [[len(group["params"]) for group in side] for side in (groups, saved)]
    if counts[0] != counts[1]:
        return [f"it has {_counted(counts[0])} here, {_counted(counts[1])} in the checkpoint"]
    reasons = [*_of_another_kind(optimizer, saved), *_renamed(groups, saved)]
    return [*reasons, *_misshapen(optimizer, state)] if _of_torch(optimizer) else reasons


def first_few(reasons: list[str], between: str) -> str:
    """Return three of the reasons in one line, and how many more there are."""
    more = [f"and {len(reasons) - 3} more"] if len(reasons) > 3 else []
    return between.join([*reasons[:3], *more])


def with_hyperparameters(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state with the moments that it has and the hyperparameters that the optimizer was built with."""
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
    """Compare the names of hyperparameters; other versions of torch only add some."""
    here = {name for group in optimizer.param_groups for name in group}
    there = {name for group in saved for name in group}
    missing, foreign = sorted(set(optimizer.defaults) - there), sorted(there - here - {"initial_lr", *_NOT_SET})
    if not (missing and foreign):
        return []
    kind = type(optimizer).__name__
    return [f"it is of another kind of optimizer: {kind} has {', '.join(missing)}, the checkpoint {', '.join(foreign)}"]


def _renamed(groups: list[Any], saved: list[Any]) -> list[str]:
    """Compare the names of the parameters, where both sides know them: shapes alone do not tell them apart."""
    reasons = []
    for here, there in zip(groups, saved, strict=True):
        pairs = zip(here.get("param_names", ()), there.get("param_names", ()), strict=False)
        reasons += [
            f"parameter {ours!r} here is {theirs!r} in the checkpoint" for ours, theirs in pairs if ours != theirs
        ]
    return reasons


def _of_torch(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether its steps are those of an optimizer of torch; only of these the form of the state is known.

    Others keep projections, tables of quantiles or preconditioners, of whatever form.
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
    """Say what is wrong with one entry of a parameter's state, if anything.

    Moments have the form of their parameter. Without a fused kernel they may also be parts of it, as the rows and
    columns of Adafactor, or flat over all parameters, as of LBFGS.
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


def _fits_into(shape: torch.Size, whole: torch.Size) -> bool:
    """Return whether a tensor could be spread over one of another shape."""
    pairs = zip(reversed(shape), reversed(whole), strict=False)
    return len(shape) <= len(whole) and all(size in (1, full) for size, full in pairs)


def _form(tensor: Tensor) -> str:
    return f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
