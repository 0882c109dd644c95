"""The component: an env of tensors around what has the interface of rsl_rl's `VecEnv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch
from pydantic import BaseModel, Field
from rlcore_plugin_device import TensorEnv, TensorStep
from torch import Tensor

from rlcore.errors import ConfigError, EnvError
from rlcore.types import EnvSpec
from rlcore_plugin_rsl_rl.groups import Groups
from rlcore_plugin_rsl_rl.made import made, missing_of

if TYPE_CHECKING:
    from rlcore import Context
    from rlcore_plugin_rsl_rl.env_log import Sums


class RslRlEnv(TensorEnv):
    """Steps a `VecEnv` of rsl_rl, which begins the next episodes itself and shows no last observation.

    So `final_observation` of an episode that ended is the observation before its last step. The value after a time-out
    is then the critic's value of that one, as in rsl_rl, which adds it to the reward.

    Args:
        config: what makes the `VecEnv`, and how many envs it is to have.
        context: has the device.

    Raises:
        ConfigError: it cannot be made, has another interface, or is on another device.

    Attributes:
        vec_env: the `VecEnv` itself.
        log: what sums up `extras["log"]`; None where nobody reads it.
    """

    class Config(BaseModel, extra="forbid"):
        """Which env, and how many."""

        make: str = Field(
            description="'module:function' that returns a VecEnv; called with num_envs, device and kwargs"
        )
        num_envs: int = Field(1, ge=1, description="envs that step together")
        groups: list[str] = Field(default_factory=list, description="groups of observations to keep; default: all")
        clip_actions: float | None = Field(None, gt=0, description="limit of actions on their way to the env")
        kwargs: dict[str, Any] = Field(default_factory=dict, description="further arguments of what makes it")

    def __init__(self, config: Config, context: Context) -> None:
        self.vec_env = vec_env = made(config, context.device)
        self.device = context.device
        self._clip = config.clip_actions
        self._groups = Groups(vec_env.get_observations(), config.groups, config.num_envs, self.device)
        self.spec = EnvSpec(
            id=config.make,
            observation_space=self._groups.space,
            action_space=gymnasium.spaces.Box(-np.inf, np.inf, (int(vec_env.num_actions),), np.float32),
            num_envs=config.num_envs,
        )
        self.log: Sums | None = None
        self._observation: Tensor | None = None
        self._is_checked = False

    def reset_tensors(self, seed: int | None = None) -> Tensor:
        """Begin an episode in every env: `seed(seed)` and `reset()` of the `VecEnv`, where it has them.

        Raises:
            EnvError: it was stepped, and has no `reset`.
        """
        if seed is not None and callable(getattr(self.vec_env, "seed", None)):
            self.vec_env.seed(seed)
        if callable(getattr(self.vec_env, "reset", None)):
            self.vec_env.reset()
        elif self._observation is not None:
            raise EnvError(
                f"env {self.spec.id!r}: {type(self.vec_env).__name__} has no reset(), so that episodes cannot begin "
                "again; write one, or leave [evaluator] out"
            )
        self._observation = self._groups.rows(self.vec_env.get_observations())
        return self._observation

    def step_tensors(self, action: Tensor) -> TensorStep:
        """Step every env; actions are copied, as a simulator may write into them."""
        before = self._observation
        assert before is not None, "reset comes first"
        given = action.clone() if self._clip is None else action.clamp(-self._clip, self._clip)
        groups, reward, dones, extras = self.vec_env.step(given)
        if not self._is_checked:
            self._check(groups, reward, dones, extras)
        done = dones > 0
        truncated = torch.zeros_like(done) if "time_outs" not in extras else done & (extras["time_outs"] > 0)
        # its own memory: the simulator may write the next observations over these
        self._observation = observation = self._groups.rows(groups)
        if self.log is not None:
            self.log.add(extras)
        ended = done.reshape(-1, *[1] * (before.dim() - 1))
        return TensorStep(observation, reward, done & ~truncated, truncated, torch.where(ended, before, observation))

    def inexact(self) -> str | None:
        """Return that the simulator has no state to be saved, or None."""
        missing = [name for name in ("state_dict", "load_state_dict") if not hasattr(self.vec_env, name)]
        if not missing:
            return None
        return f"{type(self.vec_env).__name__} has no {' and no '.join(missing)}: a resume begins new episodes"

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the simulator, and the latest observation."""
        return {"vec_env": self.vec_env.state_dict(), "observation": self._observation}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self.vec_env.load_state_dict(state["vec_env"])
        observation = state["observation"]
        self._observation = None if observation is None else observation.to(self.device)

    def close(self) -> None:
        """Close the simulator, where it can be."""
        if callable(getattr(self.vec_env, "close", None)):
            self.vec_env.close()

    def _check(self, groups: Any, reward: Any, dones: Any, extras: Any) -> None:
        """Hold the first step against the interface.

        Raises:
            EnvError: something has another form.
        """
        self._groups.check(groups)
        told = {"rewards": reward, "dones": dones}
        if not isinstance(extras, Mapping):
            raise EnvError(f"env {self.spec.id!r}: step() gives a {type(extras).__name__} for extras, not a dict")
        if "time_outs" in extras:
            told["extras['time_outs']"] = extras["time_outs"]
        for name, tensor in told.items():
            if missing := missing_of(tensor, (self.spec.num_envs,), self.device):
                raise EnvError(f"env {self.spec.id!r}: step() gives {missing} for {name}")
        if not reward.dtype.is_floating_point:
            raise EnvError(f"env {self.spec.id!r}: step() gives rewards of {reward.dtype}, not floats")
        self._is_checked = True


def vec_env_of(env: object, who: str) -> RslRlEnv:
    """Return an env that is one of this plugin.

    Raises:
        ConfigError: it is another one.
    """
    if not isinstance(env, RslRlEnv):
        raise ConfigError(f"{who} needs [env] use = 'rsl-rl', and this env is a {type(env).__name__}; leave it out")
    return env
