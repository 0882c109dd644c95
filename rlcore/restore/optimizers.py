"""The state of an optimizer of torch in a checkpoint: whether it fits, and whose its hyperparameters are.

A kernel that is given moments of another shape than its parameters reads memory that is not theirs. torch looks at the
number of parameters alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch
from torch import Tensor

from rlcore.errors import StorageError
from rlcore.types.hook_parts import HookObject
from rlcore.types.part import with_defaults

# entries of a group that are no hyperparameters
_NOT_SET: Final = ("params", "param_names")


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
