"""The `.cleanrl_model` files of CleanRL: state dicts by `torch.save`, without optimizers, clocks and settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from rlcore.errors import ConfigError, StorageError
from rlcore_plugin_import.archive import as_state_dict, load_tensors, read_file
from rlcore_plugin_import.layout import (
    Piece,
    Translation,
    layers,
    linear_layers,
    outputs,
    rows_of_critics,
    weights_of_critics,
)

_FURTHER: Final = 500_000
_NOTE: Final = "a file of CleanRL has weights alone: settings are the defaults of its script, and optimizers start over"
# what follows from the env, or from the config
_UNUSED: Final = ("actor.action_scale", "actor.action_bias", "atoms")
_LAYERS: Final = ("fc1", "fc2", "fc_mu")
_LAYERS_OF_CRITICS: Final = ("fc1", "fc2", "fc3")


@dataclass(frozen=True)
class _File:
    """What a file of CleanRL has.

    Attributes:
        what: it is, for messages.
        tensors: by name; of several networks with `actor.` or `qfNUMBER.` before it.
        settings: those that were saved with it.
    """

    what: str
    tensors: dict[str, Tensor]
    settings: Mapping[str, Any]


def translate_cleanrl(
    path: Path, name: str, further: int | None, algorithm: str | None, knows_statistics: bool
) -> Translation:
    """Return what a model of CleanRL is here.

    Args:
        path: of the file.
        name: of the run.
        further: frames to train.
        algorithm: `ppo`, `dqn`, `c51`, `td3` or `ddpg`; None to take the one whose tensors these are.
        knows_statistics: whether the user says how observations were normalised, which the file does not.

    Raises:
        ConfigError: no script that is known here wrote it, or it does not say enough.
        StorageError: the file is damaged, or has something else than tensors.
    """
    file = _read(path)
    chosen = algorithm or _algorithm(file)
    if chosen not in _TRANSLATIONS:
        raise ConfigError(f"{file.what}: {chosen!r} cannot be taken along; known are {', '.join(_TRANSLATIONS)}")
    if "actor_logstd" in file.tensors and not knows_statistics:
        raise ConfigError(
            f"{file.what}: ppo_continuous_action.py normalises observations and does not save the statistics; save "
            "obs_rms.mean, .var and .count with numpy.savez(FILE, mean=..., var=..., count=...) and say --normalize "
            "FILE, or --normalize none for a script that did not normalise"
        )
    try:
        translation = _TRANSLATIONS[chosen](file)
    except (KeyError, IndexError) as error:
        raise StorageError(f"{file.what} has no tensor {error} as {chosen} of CleanRL has") from None
    translation.config["run"] = {"name": name, "total_frames": further or _FURTHER}
    translation.clocks = {"frames": 0}
    translation.notes.append(_NOTE)
    return translation


def _read(path: Path) -> _File:
    what = repr(str(path))
    content = load_tensors(read_file(path), what)
    settings: Mapping[str, Any] = {}
    if isinstance(content, Mapping) and "model_weights" in content:
        arguments = content.get("args")
        settings = arguments if isinstance(arguments, Mapping) else {}
        content = content["model_weights"]
    if isinstance(content, tuple | list):
        names = ["actor", *(f"qf{number}" for number in range(1, len(content)))]
        parts = zip(names, content, strict=True)
        tensors = {f"{part}.{key}": value for part, state in parts for key, value in as_state_dict(state, what).items()}
        return _File(what, tensors, settings)
    return _File(what, as_state_dict(content, what), settings)


def _algorithm(file: _File) -> str:
    """Return the algorithm whose script has such tensors.

    Raises:
        ConfigError: there is none.
    """
    names = file.tensors
    if any(name.startswith("qf2.") for name in names):
        return "td3"
    if any(name.startswith("qf1.") for name in names):
        return "ddpg"
    if "critic.0.weight" in names:
        return "ppo"
    if "atoms" in names or "n_atoms" in file.settings:
        return "c51"
    if linear_layers(names, "network"):
        return "dqn"
    raise ConfigError(
        f"{file.what}: no script that is known here has tensors such as {', '.join(sorted(names)[:3])}; known are "
        f"{', '.join(_TRANSLATIONS)}, for observations that are one vector"
    )


def _made(file: _File, algorithm: str, config: dict[str, Any], pieces: list[Piece]) -> Translation:
    """Return a translation; networks of convolutions are refused.

    Raises:
        ConfigError: there are some.
    """
    if any(tensor.ndim > 2 for tensor in file.tensors.values()):
        raise ConfigError(f"{file.what}: networks with convolutions cannot be taken along")
    return Translation(algorithm, "CleanRL", config, pieces, file.tensors, unused=_UNUSED)


def _ppo(file: _File) -> Translation:
    """Translate `ppo.py` and `ppo_continuous_action.py`."""
    tensors, box = dict(file.tensors), "actor_logstd" in file.tensors
    actor, critic = (linear_layers(tensors, part) for part in ("actor_mean" if box else "actor", "critic"))
    model: dict[str, Any] = {
        "use": "mlp",
        "actor_hidden": outputs(tensors, actor)[:-1],
        "critic_hidden": outputs(tensors, critic)[:-1],
        "activation": "tanh",
        "initialisation": "orthogonal",
    }
    pieces = [*layers(actor, "actor.network", tensors), *layers(critic, "critic", tensors)]
    transforms = []
    if box:
        model["log_std"] = 0.0
        pieces.append(Piece("actor.log_std", ("actor_logstd",), lambda parts: parts[0].reshape(-1)))
        transforms = [{"use": "transforms:action-clip"}]
    config = {
        "model": model,
        "transform": transforms,
        "loss": {
            "use": "ppo",
            "clip_epsilon": 0.2,
            "clip_value": True,
            "normalize_advantage": True,
            "entropy_coef": 0.0 if box else 0.01,
            "critic_coef": 0.5,
        },
        "estimator": {"use": "gae", "gamma": 0.99, "lmbda": 0.95},
        "optimizer": [{"use": "adam", "lr": 3e-4 if box else 2.5e-4, "eps": 1e-5}],
        "scheduler": [{"use": "linear"}],
        "collector": {"frames_per_batch": 2048 if box else 512},
        "buffer": {"epochs": 10 if box else 4, "minibatch_size": 64 if box else 128},
        "learner": {"max_grad_norm": 0.5},
    }
    made = _made(file, "PPO", config, pieces)
    made.num_envs = 1 if box else 4
    return made


def _values(file: _File, name: str, loss: dict[str, Any], model: dict[str, Any]) -> Translation:
    """Translate a network of values, which is its own target at first."""
    network = linear_layers(file.tensors, "network")
    inside = ".network" if model else ""
    config = {
        "model": {
            "use": "dqn:q-network",
            "hidden": outputs(file.tensors, network)[:-1],
            "activation": "relu",
            "epsilon_start": 0.05,
            "epsilon_end": 0.05,
            **model,
        },
        "loss": {**loss, "gamma": 0.99, "target_interval": 50},
        "optimizer": [{"use": "adam", "lr": 2.5e-4}],
        "collector": {"frames_per_batch": 10},
        "buffer": {"use": "replay", "capacity": 10_000, "minibatch_size": 128, "warmup_frames": 10_000},
    }
    pieces = [
        piece for part in ("q_values", "target_q_values") for piece in layers(network, f"{part}{inside}", file.tensors)
    ]
    return _made(file, name, config, pieces)


def _dqn(file: _File) -> Translation:
    return _values(file, "DQN", {"use": "dqn"}, {})


def _c51(file: _File) -> Translation:
    """Translate `c51.py`, whose values are between `v_min` and `v_max`.

    Raises:
        ConfigError: the file does not say between which.
    """
    settings, atoms = file.settings, file.tensors.get("atoms")
    if atoms is not None and atoms.numel() > 1:
        low, high, count = float(atoms[0]), float(atoms[-1]), atoms.numel()
    elif all(isinstance(settings.get(name), int | float) for name in ("v_min", "v_max", "n_atoms")):
        low, high, count = float(settings["v_min"]), float(settings["v_max"]), int(settings["n_atoms"])
    else:
        raise ConfigError(f"{file.what} does not say v_min, v_max and n_atoms")
    return _values(file, "C51", {"use": "dqn:c51"}, {"atoms": count, "v_min": low, "v_max": high})


def _deterministic(file: _File, name: str, critics: int) -> Translation:
    """Translate `td3_continuous_action.py` and `ddpg_continuous_action.py`.

    Their critics see actions in the units of the env, and those here see them between -1 and 1: the first layer takes
    the difference.
    """
    tensors = dict(file.tensors)
    scale, bias = (tensors[f"actor.{part}"].reshape(-1) for part in ("action_scale", "action_bias"))
    for number in range(1, critics + 1):
        first = f"qf{number}.fc1"
        weight = tensors[f"{first}.weight"]
        of_actions = weight[:, -scale.numel() :]
        tensors[f"{first}.bias"] = tensors[f"{first}.bias"] + of_actions @ bias
        tensors[f"{first}.weight"] = torch.cat([weight[:, : -scale.numel()], of_actions * scale], 1)
    pieces = []
    for part in ("actor", "target_actor"):
        pieces += layers([f"actor.{layer}" for layer in _LAYERS], f"{part}.network", tensors)
    for part in ("critics", "target_critics"):
        for index, layer in enumerate(_LAYERS_OF_CRITICS):
            names = [f"qf{number}.{layer}" for number in range(1, critics + 1)]
            ours = f"{part}.layers.{index}"
            pieces.append(Piece(f"{ours}.weight", tuple(f"{one}.weight" for one in names), weights_of_critics))
            pieces.append(Piece(f"{ours}.bias", tuple(f"{one}.bias" for one in names), rows_of_critics))
    loss: dict[str, Any] = {"use": "sac:td3" if critics > 1 else "sac:ddpg", "target_tau": 0.005, "target_interval": 2}
    config = {
        "model": {
            "use": "sac:actor-critic",
            "actor": "deterministic",
            "critics": critics,
            "hidden": outputs(tensors, [f"actor.{layer}" for layer in _LAYERS])[:-1],
            "critic_hidden": outputs(tensors, [f"qf1.{layer}" for layer in _LAYERS_OF_CRITICS])[:-1],
            "noise": 0.1,
            "random_frames": 0,
        },
        "loss": loss,
        "optimizer": [
            {"use": "adam", "name": part, "parameters": [part], "losses": [f"loss_{part}"], "lr": 3e-4, **every}
            for part, every in (("critics", {}), ("actor", {"every": 2}))
        ],
        "collector": {"frames_per_batch": 1},
        "buffer": {"use": "replay", "capacity": 1_000_000, "minibatch_size": 256, "warmup_frames": 25_000},
    }
    made = _made(file, name, config, pieces)
    made.tensors = tensors
    return made


_TRANSLATIONS: Final[dict[str, Callable[[_File], Translation]]] = {
    "ppo": _ppo,
    "dqn": _dqn,
    "c51": _c51,
    "td3": lambda file: _deterministic(file, "TD3", 2),
    "ddpg": lambda file: _deterministic(file, "DDPG", 1),
}
