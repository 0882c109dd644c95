"""The classes of TorchRL by their names, as far as a config can name them."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType
from typing import Any, Final

from rlcore.errors import ConfigError, MissingPluginError, did_you_mean

EXTRA: Final = "rlcore-plugin-torchrl[torchrl]"
# where the classes of a kind are, the class that each derives from, and the end that its name may go without
_PLACES: Final = {
    "env": ("torchrl.envs", "EnvBase", "Env"),
    "env transform": ("torchrl.envs", "Transform", ""),
    "loss": ("torchrl.objectives", "LossModule", "Loss"),
    "value estimator": ("torchrl.objectives.value", "ValueEstimatorBase", "Estimator"),
    "replay buffer": ("torchrl.data", "ReplayBuffer", ""),
    "storage": ("torchrl.data.replay_buffers", "Storage", ""),
    "sampler": ("torchrl.data.replay_buffers", "Sampler", ""),
    "writer": ("torchrl.data.replay_buffers", "Writer", ""),
    "network": ("torchrl.modules", "Module", ""),
    "collector": ("torchrl.collectors", "BaseCollector", ""),
}


def torchrl_module(name: str) -> ModuleType:
    """Import a module of TorchRL.

    Raises:
        MissingPluginError: TorchRL is not installed; says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in ("torchrl", name):
            raise
        raise MissingPluginError(
            f'parts of TorchRL need torchrl, which is not installed: pip install "{EXTRA}"'
        ) from error


@cache
def classes(kind: str) -> dict[str, type]:
    """Return the classes of a kind that can be built, by name.

    Args:
        kind: a key of the table above, such as `"loss"`.

    Raises:
        MissingPluginError: TorchRL is not installed.
    """
    place, base, _ = _PLACES[kind]
    modules = [torchrl_module(place)] + ([torchrl_module("torch.nn")] if kind == "network" else [])
    kept: Any = vars(modules[-1])[base]
    members = {name: getattr(module, name, None) for module in modules for name in dir(module) if name[0] != "_"}
    return {
        name: part
        for name, part in members.items()
        if isinstance(part, type) and issubclass(part, kept) and part is not kept
    }


def part_class(kind: str, name: str, key: str) -> type:
    """Return the class of TorchRL that a config names, with or without the end of its name, in any case of letters.

    Args:
        kind: a key of the table above.
        name: such as `"SACLoss"`, `"GymEnv"` or `"gym"`.
        key: where the config says so, for messages.

    Raises:
        ConfigError: TorchRL has no such class; says the nearest name.
        MissingPluginError: TorchRL is not installed.
    """
    known = classes(kind)
    if name in known:
        return known[name]
    ending = _PLACES[kind][2]
    short = {_plain(known_name.removesuffix(ending)): part for known_name, part in known.items()}
    plain = {_plain(known_name): part for known_name, part in known.items()}
    part = plain.get(_plain(name)) or (short.get(_plain(name)) if ending else None)
    if part is None:
        raise ConfigError(f"{key} = {name!r}: TorchRL has no such {kind}{did_you_mean(name, [*known, *short])}")
    return part


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
