"""An env and a hook that fail as a config says, in this process only: `use = "testing:faulty"`."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import numpy as np
from pydantic import BaseModel, Field

from rlcore.hooks.specs import hookimpl
from rlcore.types.context import Context
from rlcore.types.records import Step
from rlcore_plugin_testing.toy import ToyEnv

EnvFault = Literal[
    "none",
    "raise",
    "hang",
    "hang with the GIL",
    "exit",
    "kill",
    "nan reward",
    "inf reward",
    "nan observation",
    "wrong shape",
    "wrong type",
    "reset raises",
    "reset hangs",
]
HookFault = Literal["none", "raise", "hang", "sleep", "exit", "quit", "kill", "return"]


def end_of(fault: str) -> None:
    """Do what ends a process, or keeps it waiting."""
    if fault in ("hang", "reset hangs"):
        time.sleep(3600)
    elif fault == "hang with the GIL":
        ctypes.PyDLL(None).sleep(3600)
    elif fault == "exit":
        os._exit(1)
    elif fault == "quit":
        raise SystemExit("on purpose")
    elif fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault in ("raise", "reset raises"):
        raise RuntimeError("on purpose")


class FaultyEnv(ToyEnv):
    """The toy env, until step `at`, counted over all envs and episodes."""

    class Config(ToyEnv.Config):
        """What goes wrong, and when."""

        fault: EnvFault = Field("none", description="what goes wrong")
        at: int = Field(20, ge=0, description="number of the step, or of the reset, at which it goes wrong")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self._fault = config.fault
        self._left = config.at

    def reset(self, seed: int | None = None) -> Any:
        """Reset the toy env, or fail."""
        if self._fault.startswith("reset") and self._is_time():
            end_of(self._fault)
        return super().reset(seed)

    def step(self, action: Any) -> Step:
        """Step the toy env, or fail."""
        step = super().step(action)
        if self._fault.startswith("reset") or self._fault == "none" or not self._is_time():
            return step
        end_of(self._fault)
        return _spoilt(step, self._fault)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the toy env, and how many steps are left."""
        return {**super().state_dict(), "left": self._left}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set both."""
        super().load_state_dict(state)
        self._left = state["left"]

    def _is_time(self) -> bool:
        self._left -= 1
        return self._left == -1


def _spoilt(step: Step, fault: str) -> Step:
    """Return the step with something in it that cannot be trained on."""
    reward, observation = np.array(step.reward), np.array(step.observation)
    if fault.endswith("reward"):
        reward[0] = np.nan if fault.startswith("nan") else np.inf
        return step._replace(reward=reward)
    if fault == "nan observation":
        observation[0, 0] = np.nan
        return step._replace(observation=observation)
    if fault == "wrong shape":
        return step._replace(observation=observation[:, :-1])
    return step._replace(reward=np.asarray([object()] * len(reward)))


class FaultyHook:
    """Does as it is told at one point, from some frame on."""

    _WAIT: Final = 0.05

    class Config(BaseModel, extra="forbid"):
        """What goes wrong, where, and when."""

        point: str = Field("post_steps", description="the point of the loop")
        fault: HookFault = Field(
            "none", description="what goes wrong; quit is sys.exit, sleep takes a twentieth second"
        )
        from_frame: int = Field(0, ge=0, description="from which frame on")
        returns: Any = Field(None, description="with fault = 'return': the value")

    def __init__(self, config: Config, context: Context) -> None:
        setattr(self, config.point, hookimpl(self._implementation(config, context)))

    def _implementation(self, config: Config, context: Context) -> Callable[[], Any]:
        def act() -> Any:
            due = context.progress.frames >= config.from_frame
            if not due or config.fault == "none":
                return {} if config.point == "optimizer" else None
            if config.fault == "sleep":
                time.sleep(self._WAIT)
            end_of(config.fault)
            return config.returns

        return act
