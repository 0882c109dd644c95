"""Sections of a config that several algorithms share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from rlcore.errors import ConfigError, StorageError
from rlcore_plugin_import.layout import OptimizerLayout, Translation
from rlcore_plugin_import.pickle_records import Record
from rlcore_plugin_import.pickled_arrays import array_of
from rlcore_plugin_import.sb3_file import SavedModel

_ADAM: Final = ("lr", "betas", "eps", "weight_decay", "amsgrad")
# keys of the sections of optimizers, by the name of the optimizer
_KEYS: Final = {
    "adam": _ADAM,
    "adamw": _ADAM,
    "sgd": ("lr", "momentum", "dampening", "nesterov", "weight_decay"),
    "rmsprop": ("lr", "alpha", "eps", "weight_decay", "momentum", "centered"),
}
_ACTIVATIONS: Final = {"Tanh": "tanh", "ReLU": "relu", "SiLU": "silu"}
_BUFFERS: Final = ("ra_mean", "ra_var", "steps")


def activation_of(saved: SavedModel, default: str) -> str:
    """Return the activation of the networks.

    Raises:
        ConfigError: no network here has it.
    """
    text = str(saved.policy_keyword("activation_fn", default))
    name = text.rpartition(".")[2].removesuffix("'>")
    if name not in _ACTIVATIONS:
        raise ConfigError(
            f"{saved.what}: the activation {name} cannot be taken along; known are {', '.join(_ACTIVATIONS)}"
        )
    return _ACTIVATIONS[name]


def check_extractor(saved: SavedModel) -> None:
    """Refuse networks in front of the layers.

    Raises:
        ConfigError: the model has some.
    """
    extractor = str(saved.policy_keyword("features_extractor_class", "FlattenExtractor"))
    inside = [name for name in saved.tensors if "features_extractor" in name]
    if "FlattenExtractor" not in extractor or inside:
        raise ConfigError(
            f"{saved.what}: features_extractor_class = {extractor} cannot be taken along: observations that are one "
            "vector can, without a network before the layers"
        )


def run_section(saved: SavedModel, name: str, further: int | None) -> dict[str, Any]:
    """Return `[run]`, whose horizon is the frames so far and the further ones.

    Args:
        saved: the model.
        name: of the run.
        further: frames; None for as many as the last `learn` had.
    """
    seed = saved.data.get("seed")
    more = further if further is not None else max(1, saved.whole("_total_timesteps", 1))
    return {
        "name": name,
        "seed": seed if isinstance(seed, int) and seed >= 0 else 0,
        "total_frames": saved.whole("num_timesteps") + more,
    }


def optimizer_section(
    saved: SavedModel, file: str, section: str, **keys: Any
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return an `[[optimizer]]` section, and the state of the optimizer in the file.

    Args:
        saved: the model.
        file: name of the optimizer in the archive, without `.pth`.
        section: name of the section.
        keys: further keys.

    Raises:
        ConfigError: nothing here is an optimizer of that class.
        StorageError: the archive has no such state.
    """
    state = saved.optimizers.get(file)
    groups = state.get("param_groups") if state is not None else None
    if state is None or not isinstance(groups, list) or len(groups) != 1 or not isinstance(groups[0], Mapping):
        raise StorageError(f"{saved.what} has no state of one group of parameters in {file}.pth")
    group, use = groups[0], _optimizer_name(saved, groups[0], file)
    values = {key: _toml(group[key]) for key in _KEYS[use] if key in group}
    return {"use": use, "name": section, **values, **keys}, state


def _toml(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _optimizer_name(saved: SavedModel, group: Mapping[str, Any], file: str) -> str:
    kind = str(saved.policy_keyword("optimizer_class", "Adam")).rpartition(".")[2].removesuffix("'>").lower()
    if file == "ent_coef_optimizer":
        kind = "adam"
    if kind == "adam" and group.get("decoupled_weight_decay"):
        kind = "adamw"
    if kind not in _KEYS:
        raise ConfigError(f"{saved.what}: the optimizer {kind!r} cannot be taken along; known are {', '.join(_KEYS)}")
    return kind


def optimizer_layout(section: str, state: Mapping[str, Any], saved: SavedModel, prefix: str = "") -> OptimizerLayout:
    """Return the layout of an optimizer of all parameters whose names begin alike.

    Args:
        section: name of the section.
        state: of the file.
        saved: the model.
        prefix: of the names.
    """
    names = [name for name in saved.tensors if name.startswith(prefix) and not name.endswith(_BUFFERS)]
    return OptimizerLayout(section, state, names)


def off_policy_clocks(saved: SavedModel) -> dict[str, int]:
    """Return the clocks of an algorithm with a replay buffer."""
    return {
        "frames": saved.whole("num_timesteps"),
        "updates": saved.whole("_n_updates"),
        "episodes": saved.whole("_episode_num"),
    }


def frames_between_updates(saved: SavedModel, notes: list[str]) -> tuple[int, int]:
    """Return the frames of a batch, and the updates after it, of an algorithm with a replay buffer."""
    count, envs = _train_freq(saved, notes), max(1, saved.whole("n_envs", 1))
    frames = count * envs
    steps = saved.number("gradient_steps", 1)
    return frames, int(steps) if steps > 0 else frames


def _train_freq(saved: SavedModel, notes: list[str]) -> int:
    """Return the steps of each env between two trainings."""
    record = saved.records("train_freq")
    if isinstance(record, Record) and len(record.arguments) == 2:
        count, unit = record.arguments
        if isinstance(count, int) and isinstance(unit, Record) and unit.arguments == ("step",):
            return count
    notes.append("train_freq is not in steps, or cannot be read: it trains after every step here")
    return 1


def replay_section(saved: SavedModel, updates: int, notes: list[str]) -> dict[str, Any]:
    """Return `[buffer]`, which fills again before the first update.

    Raises:
        ConfigError: the model learns from returns over several steps.
    """
    if saved.whole("n_steps", 1) > 1:
        raise ConfigError(f"{saved.what}: n_steps = {saved.whole('n_steps')} of a replay buffer cannot be taken along")
    batch = max(1, saved.whole("batch_size", 256))
    fills = max(saved.whole("learning_starts"), batch)
    notes.append(f"the replay buffer is not in the file: {fills:,} frames are collected before the first update")
    return {
        "use": "replay",
        "capacity": max(saved.whole("buffer_size", 1_000_000), batch),
        "minibatch_size": batch,
        "updates_per_batch": updates,
        "warmup_frames": saved.whole("num_timesteps") + fills,
    }


def note_schedules(saved: SavedModel, notes: list[str]) -> None:
    """Note a learning rate that changed."""
    if saved.schedule("learning_rate") is None and saved.schedule("lr_schedule") is None:
        notes.append("the learning rate was a schedule, which cannot be read: it stays as it was last")


def temperature_of(saved: SavedModel, notes: list[str]) -> tuple[float | None, float | None]:
    """Return the fixed weight of the entropy, None where it is learned; and the entropy that it then keeps."""
    given = saved.data.get("ent_coef", "auto")
    if isinstance(given, int | float):
        return float(given), None
    target = saved.data.get("target_entropy")
    if isinstance(target, int | float):
        return None, float(target)
    record = saved.records("target_entropy")
    if isinstance(record, Record):
        return None, float(array_of(record, f"{saved.what}: target_entropy").item())
    notes.append("target_entropy cannot be read: it is minus the number of actions here")
    return None, None


def noise_of(saved: SavedModel, notes: list[str]) -> float:
    """Return the deviation of the noise of a deterministic actor."""
    noise = saved.data.get("action_noise")
    if noise is None:
        return 0.0
    text = noise.get("_sigma", "") if isinstance(noise, Mapping) else ""
    try:
        numbers = [float(part) for part in str(text).strip("[]").replace(",", " ").split()]
    except ValueError:
        numbers = []
    if not numbers or not all(math.isfinite(one) and 0 <= one <= 1 for one in numbers):
        notes.append("action_noise cannot be read: the actor explores without noise; set model.noise")
        return 0.0
    if "Ornstein" in str(noise.get(":type:")) or len(set(numbers)) > 1:
        notes.append(f"action_noise is independent here, and of one deviation: {numbers[0]:g}")
    return numbers[0]


def critics_in(saved: SavedModel, prefix: str = "critic") -> list[str]:
    """Return the names of the critics, `PREFIX.qfNUMBER`."""
    numbers = {
        name.removeprefix(f"{prefix}.qf").partition(".")[0] for name in saved.tensors if name.startswith(f"{prefix}.qf")
    }
    return [f"{prefix}.qf{number}" for number in sorted(numbers, key=lambda text: (len(text), text))]


def hidden_of(names: Sequence[str], tensors: Mapping[str, torch.Tensor], what: str) -> list[int]:
    """Return the outputs of all layers but the last.

    Raises:
        StorageError: there is no layer.
    """
    if not names:
        raise StorageError(f"{what} has no layers where its policy has some")
    return [int(tensors[f"{name}.weight"].shape[0]) for name in names[:-1]]


def spaces_of(saved: SavedModel) -> dict[str, Any]:
    """Return what the file says of the spaces."""
    return {"observation": saved.space("observation_space"), "action": saved.space("action_space")}


def translation(saved: SavedModel, config: dict[str, Any], **keys: Any) -> Translation:
    """Return a translation with what every model of Stable-Baselines3 has."""
    return Translation(
        saved.algorithm,
        "Stable-Baselines3",
        config,
        tensors={**saved.tensors, **saved.variables},
        unused=("ent_coef_tensor",),
        num_envs=max(1, saved.whole("n_envs", 1)),
        spaces=spaces_of(saved),
        **keys,
    )
