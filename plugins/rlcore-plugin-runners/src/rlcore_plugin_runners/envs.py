"""What `EnvCls` may be: the section [env] that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rlcore.errors import ConfigError
from rlcore_plugin_runners.references import plain, reference_to

# importing the module before the colon registers the id
_OWN: Final = "rlcore_plugin_runners.own_env:rlpyt/Own-v0"


def gym_make(id: str, **kwargs: Any) -> dict[str, Any]:
    """Return the section of an env of Gymnasium.

    Args:
        id: as `gymnasium.make` takes it; `module:Id-v0` imports the module first.
        kwargs: of the env's constructor.
    """
    return {"use": "gymnasium:gymnasium", "id": id, "kwargs": kwargs}


def AtariEnv(game: str = "pong", **settings: Any) -> dict[str, Any]:  # noqa: N802, a class in rlpyt
    """Return the section of an Atari game.

    Args:
        game: such as `pong`.
        settings: `frame_skip`, `num_img_obs`, `clip_reward`, `episodic_lives`, `fire_on_reset`, `max_start_noops`,
            `repeat_action_probability`, `horizon` (steps).

    Raises:
        ConfigError: another setting.
    """
    names = {
        "frame_skip": "frame_skip",
        "num_img_obs": "stack",
        "episodic_lives": "episodic_life",
        "fire_on_reset": "fire_reset",
        "max_start_noops": "noop_max",
        "repeat_action_probability": "repeat_action_probability",
    }
    given = {"episodic_lives": True, "fire_on_reset": False, **settings}
    clip_reward, horizon = given.pop("clip_reward", True), given.pop("horizon", 27_000)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ConfigError(
            f"AtariEnv has no setting {', '.join(unknown)}; it has clip_reward, horizon, {', '.join(names)}"
        )
    section: dict[str, Any] = {"use": "atari:atari", "game": game, "stack": 4}
    section["max_frames"] = horizon * int(given.get("frame_skip", 4))
    section |= {names[name]: value for name, value in given.items()}
    return {**section, "clip_reward": clip_reward}


def sections_of(make: Any, arguments: Mapping[str, Any], num_envs: int) -> dict[str, Any]:
    """Return the sections that an `EnvCls` with its `env_kwargs` stands for.

    Raises:
        ConfigError: it is neither `gym_make` nor `AtariEnv`, and no class or function that other processes find.
    """
    env = make(**arguments) if make in (gym_make, AtariEnv) else _own(make, dict(arguments))
    clips = env.pop("clip_reward", False)
    return {"env": {**env, "num_envs": num_envs}, "hook": [{"use": "core:reward-clip"}] if clips else []}


def _own(make: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    kwargs = {"env": reference_to("EnvCls", make), "arguments": plain("env_kwargs", arguments)}
    return {"use": "gymnasium:gymnasium", "id": _OWN, "kwargs": kwargs, "vectorization": "serial"}
