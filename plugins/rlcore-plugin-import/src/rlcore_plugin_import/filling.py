"""The parts of a run, filled with what a file of another library has: weights, moments, statistics and clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn

from rlcore.errors import StorageError
from rlcore.run import Run
from rlcore_plugin_import.layout import OptimizerLayout, Piece, Translation

# buffers that follow from the config, and are in no file
_CONSTANTS: Final = (".fractions", ".support")


def fill(run: Run, translation: Translation) -> list[str]:
    """Fill a run that was built and not trained; return what of the optimizers starts over, and why.

    Args:
        run: built from the config of the translation.
        translation: of the file.

    Raises:
        StorageError: a tensor does not fit, or one is missing.
    """
    trainer = run.trainer
    _fill_model(trainer.model, translation)
    notes = [
        note
        for layout in translation.optimizers
        for note in _fill_optimizer(
            trainer.parts.stateful[f"optimizer.{layout.section}"], layout, trainer.model, translation
        )
    ]
    for name, state in translation.transforms.items():
        trainer.parts.stateful[name].load_state_dict(state)
    _set_clocks(run, translation)
    return notes


def _places(model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of a model by name, without the name of what is behind an encoder of the observations."""
    return {
        name.replace(".head.layers.", ".layers."): tensor for name, tensor in model.state_dict(keep_vars=True).items()
    }


def _ours(piece: Piece) -> str:
    return piece.ours.replace(".head.layers.", ".layers.")


def _fill_model(model: Any, translation: Translation) -> None:
    places, made = _places(model), {_ours(piece): piece.of(translation.tensors) for piece in translation.pieces}
    unknown = [name for name in made if name not in places]
    lacking = [name for name in places if name not in made and _is_needed(name, translation)]
    if unknown or lacking:
        raise StorageError(
            f"the model of {translation.algorithm} does not fit the one here: "
            + "; ".join([*(f"no place for {name}" for name in unknown), *(f"nothing for {name}" for name in lacking)])
        )
    if translation.trains:
        _check_all_are_used(translation)
    for name, tensor in made.items():
        _check_shape(name, tensor, places[name])
    with torch.no_grad():
        for name, tensor in made.items():
            places[name].copy_(tensor)
    model.policy.refresh()


def _check_all_are_used(translation: Translation) -> None:
    """Refuse tensors that no network here has.

    Raises:
        StorageError: there are some.
    """
    used = {name for piece in translation.pieces for name in piece.theirs} | {*translation.unused}
    unknown = [name for name in translation.tensors if name not in used]
    if unknown:
        raise StorageError(
            f"the model of {translation.algorithm} has tensors that no network here has: {', '.join(unknown[:5])}"
        )


def _is_needed(name: str, translation: Translation) -> bool:
    if name == "temperature.log_alpha" and translation.config["loss"].get("temperature") is not None:
        return False
    return name.startswith("actor.") if not translation.trains else not name.endswith(_CONSTANTS)


def _check_shape(name: str, tensor: Tensor, place: Tensor) -> None:
    if tensor.shape != place.shape:
        raise StorageError(
            f"{name} is {list(tensor.shape)} in the file and {list(place.shape)} for this env: it is the env that the "
            "model was trained in that --env has to name"
        )


def _fill_optimizer(
    optimizer: torch.optim.Optimizer, layout: OptimizerLayout, model: nn.Module, translation: Translation
) -> list[str]:
    """Set the moments of an optimizer; return why it starts over, if it does.

    Raises:
        StorageError: the state is none of these parameters.
    """
    states = _by_name(layout)
    if not states:
        return [f"optimizer {layout.section} has taken no step"]
    names = {id(tensor): name for name, tensor in _places(model).items()}
    pieces = {_ours(piece): piece for piece in translation.pieces}
    steps: set[float] = set()
    made: dict[Tensor, dict[str, Tensor]] = {}
    for parameter in (parameter for group in optimizer.param_groups for parameter in group["params"]):
        piece = pieces[names[id(parameter)]]
        if any(name not in states for name in piece.theirs):
            return [f"optimizer {layout.section} starts over: it has no moments of {piece.theirs[0]}"]
        made[parameter], taken = _state(piece, states, parameter)
        steps |= taken
    if len(steps) > 1:
        return [f"optimizer {layout.section} starts over: its parameters have taken different numbers of steps"]
    optimizer.state.update(made)
    return []


def _by_name(layout: OptimizerLayout) -> dict[str, Mapping[str, Any]]:
    """Return the state of each parameter by its name there.

    Raises:
        StorageError: the state is of other parameters.
    """
    groups, states = layout.state.get("param_groups"), layout.state.get("state")
    numbers = groups[0].get("params") if isinstance(groups, list) and groups else None
    if not isinstance(states, Mapping) or not isinstance(numbers, list) or len(numbers) != len(layout.parameters):
        raise StorageError(f"the state of optimizer {layout.section} is not of the parameters of the model")
    by_number = zip(numbers, layout.parameters, strict=True)
    return {name: states[number] for number, name in by_number if isinstance(states.get(number), Mapping)}


def _state(
    piece: Piece, states: Mapping[str, Mapping[str, Any]], parameter: Tensor
) -> tuple[dict[str, Tensor], set[float]]:
    """Return the state of a parameter here, and the numbers of steps that were taken of it."""
    each = [states[name] for name in piece.theirs]
    taken = {float(state["step"]) for state in each if "step" in state}
    made: dict[str, Tensor] = {}
    for key, value in each[0].items():
        if key == "step":
            made[key] = torch.tensor(float(value), device=parameter.device)
        elif isinstance(value, Tensor):
            tensor = piece.of({name: state[key] for name, state in zip(piece.theirs, each, strict=True)})
            _check_shape(f"{key} of {piece.ours}", tensor, parameter)
            made[key] = tensor.to(parameter).clone(memory_format=torch.preserve_format)
    return made, taken


def _set_clocks(run: Run, translation: Translation) -> None:
    """Set the clocks; the updates of an algorithm that does not count them are the steps of its optimizer."""
    progress, clocks = run.trainer.progress, dict(translation.clocks)
    optimizers = [part for name, part in run.trainer.parts.stateful.items() if name.startswith("optimizer.")]
    if "updates" not in clocks:
        steps = [float(state["step"]) for one in optimizers for state in one.state.values() if "step" in state]
        clocks["updates"] = int(max(steps, default=0))
    progress.frames, progress.updates = clocks["frames"], clocks["updates"]
    progress.episodes = clocks.get("episodes", 0)
