"""Each algorithm of Stable-Baselines3 and its contrib package, with what translates its models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from rlcore_plugin_import.layout import Translation
from rlcore_plugin_import.sb3_actor_critic import actor_critic
from rlcore_plugin_import.sb3_file import SavedModel, read_sb3
from rlcore_plugin_import.sb3_on_policy import on_policy
from rlcore_plugin_import.sb3_q_learning import q_learning
from rlcore_plugin_import.sb3_search import random_search

Translate = Callable[[SavedModel, str, int | None], Translation]
ALGORITHMS: Final[dict[str, Translate]] = {
    **dict.fromkeys(("A2C", "PPO", "MaskablePPO", "RecurrentPPO", "TRPO"), on_policy),
    **dict.fromkeys(("DQN", "QRDQN"), q_learning),
    **dict.fromkeys(("SAC", "TD3", "DDPG", "CrossQ", "TQC"), actor_critic),
    "ARS": random_search,
}


def translate_sb3(path: Path, name: str, further: int | None) -> Translation:
    """Return what a model of Stable-Baselines3 is here.

    Args:
        path: of the zip archive.
        name: of the run.
        further: frames to train; None for as many as the last `learn` had.

    Raises:
        ConfigError: the model has something that cannot be taken along; says what.
        StorageError: the archive is damaged, or no model.
    """
    saved = read_sb3(path)
    return ALGORITHMS[saved.algorithm](saved, name, further)
