"""What rsl_rl's `model_*.pt` hold, of a model and optimizers of rlcore; files of either are read by the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import nn

from rlcore.errors import StorageError

# rsl_rl has the standard deviations in a module of their own
_INNER: Final = "distribution."
_STD: Final = ("std_param", "log_std_param")


def saved(model: Any, optimizers: Mapping[str, torch.optim.Optimizer]) -> dict[str, Any]:
    """Return weights and the state of the optimizers, as one optimizer over actor and critic would have it."""
    states: dict[int, Any] = {}
    group: dict[str, Any] = {}
    for optimizer in optimizers.values():
        (own,) = optimizer.param_groups
        group = {name: value for name, value in own.items() if name not in ("params", "param_names")}
    places = {id(parameter): index for index, parameter in enumerate(_parameters(model))}
    for optimizer in optimizers.values():
        for parameter, state in optimizer.state.items():
            # copies: rlcore counts the steps of all parameters in one tensor, which torch would count up for each
            states[places[id(parameter)]] = {name: value.clone() for name, value in state.items()}
    return {
        "actor_state_dict": _outward(model.actor.state_dict()),
        "critic_state_dict": dict(model.critic.state_dict()),
        "optimizer_state_dict": {
            "state": dict(sorted(states.items())),
            "param_groups": [{**group, "params": list(range(len(places)))}],
        },
    }


def load_weights(part: nn.Module, state: Mapping[str, Any], strict: bool, what: str) -> None:
    """Load the weights of actor or critic.

    Raises:
        StorageError: they are of another network.
    """
    inward = {name.removeprefix(_INNER): value for name, value in state.items()}
    try:
        part.load_state_dict(inward, strict=strict)
    except RuntimeError as error:
        raise StorageError(f"{what}: the weights are of another network than train_cfg says: {error}") from error


def load_optimizers(model: Any, optimizers: Mapping[str, torch.optim.Optimizer], state: Mapping[str, Any]) -> None:
    """Load the state of one optimizer over actor and critic into those of both.

    Raises:
        StorageError: it is of another number of parameters.
    """
    parameters = _parameters(model)
    (group,) = state["param_groups"]
    if len(group["params"]) != len(parameters):
        raise StorageError(
            f"optimizer_state_dict is of {len(group['params'])} parameters, and the model has {len(parameters)}"
        )
    states = {
        id(parameter): state["state"].get(place) for parameter, place in zip(parameters, group["params"], strict=True)
    }
    for optimizer in optimizers.values():
        own = optimizer.state_dict()
        for one in own["param_groups"]:
            one["lr"] = group["lr"]
        flat = [parameter for one in optimizer.param_groups for parameter in one["params"]]
        own["state"] = {
            index: dict(found) for index, parameter in enumerate(flat) if (found := states[id(parameter)]) is not None
        }
        optimizer.load_state_dict(own)


def _outward(state: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{_INNER}{name}" if name in _STD else name: value for name, value in state.items()}


def _parameters(model: Any) -> list[nn.Parameter]:
    """Return the parameters in the order of rsl_rl's optimizer."""
    return [*model.actor.parameters(), *model.critic.parameters()]
