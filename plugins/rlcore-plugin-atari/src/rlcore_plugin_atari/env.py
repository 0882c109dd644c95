"""The env component: finds the game, and chooses between games stepped one by one and ALE's own vector env."""

from __future__ import annotations

import importlib
import re
from typing import Any

from rlcore.errors import ConfigError, did_you_mean
from rlcore.types import Context
from rlcore_plugin_atari.config import Config


def make(config: Config, context: Context) -> Any:
    """Build the games.

    Raises:
        ConfigError: ale-py or opencv is missing, there is no such game, or ALE's vector env cannot do what is asked.
    """
    _needs("ale_py", "ale-py")
    rom = _rom(config.game)
    if config.episodic_life and context.name.endswith("evaluation"):
        config = config.model_copy(update={"episodic_life": False})
    if config.vectorization == "native":
        from rlcore_plugin_atari.native import NativeGames  # either needs libraries that the other does not

        return NativeGames(config, rom)
    _needs("cv2", "opencv-python-headless")
    from rlcore_plugin_atari.serial import SerialGames

    return SerialGames(config, rom)


def _needs(module: str, package: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"[env] use = 'atari' needs {package}: {error}; pip install 'rlcore[atari]'") from error


def _rom(game: str) -> str:
    """Return the name of a game as ALE has it: `space_invaders` of `ALE/SpaceInvaders-v5` too.

    Raises:
        ConfigError: there is none of that name.
    """
    from ale_py import roms

    bare = re.sub(r"(NoFrameskip)?-v\d+$", "", game.rpartition("/")[2])
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", bare).lower()
    known = roms.get_all_rom_ids()
    if name not in known:
        raise ConfigError(f"[env] game = {game!r}: there is no such game{did_you_mean(name, known)}")
    return name
