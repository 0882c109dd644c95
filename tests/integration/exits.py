"""A loose plugin file whose parts leave, or raise what is no usual error, where a test asks for it."""

from __future__ import annotations

import os
import sys
from typing import Any

import gymnasium
import numpy as np
from pydantic import BaseModel

from rlcore import Component, Context, hookimpl
from rlcore.loggers.base import LoggerBase


class Mute(Exception):  # noqa: N818
    """Leaves when it is asked what it is."""

    def __str__(self):
        sys.exit(0)


class Unnamed(Exception):  # noqa: N818
    """Takes no note that would say whose it is."""

    def add_note(self, note):
        raise TypeError("no notes here")


def armed():
    """Return whether the test wants the fault; the config is the same with and without."""
    return os.environ.get("TEST_FAULTS") == "1"


KINDS = {
    "exit": lambda: SystemExit(0),
    "base": lambda: BaseException("gone"),
    "generator": lambda: GeneratorExit(),
    "stop": lambda: StopIteration(),
    "mute": lambda: Mute(),
    "unnamed": lambda: Unnamed("no name"),
}


class LeavingEnv(gymnasium.Env):
    """Raises `kind` in its constructor, `reset`, `step` or `close`; in `step` from number `at` on."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, where="", kind="exit", at=40):
        self.where, self.kind, self.at, self.count = where, kind, at, 0
        self._maybe("constructor")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._maybe("reset")
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.count += 1
        if self.count >= self.at:
            self._maybe("step")
        return np.zeros(2, np.float32), 1.0, self.count % 7 == 0, False, {}

    def close(self):
        self._maybe("close")

    def _maybe(self, place):
        if armed() and self.where == place:
            raise KINDS[self.kind]()


class Leaves:
    """Raises at one point from some frame on, in its constructor, or when its state is taken or set."""

    class Config(BaseModel, extra="forbid"):
        point: str = "post_steps"
        kind: str = "exit"
        from_frame: int = 64

    def __init__(self, config: Config, context: Context) -> None:
        self.config, self.progress = config, context.progress
        self._maybe("constructor", 0)
        if not hasattr(self, config.point):
            setattr(self, config.point, hookimpl(lambda: self._maybe(config.point, config.from_frame)))

    @hookimpl
    def setup(self):
        """Nothing: a hook implements a point."""

    def state_dict(self):
        self._maybe("state_dict", self.config.from_frame)
        return {}

    def load_state_dict(self, state):
        self._maybe("load_state_dict", 0)

    def _maybe(self, place, frame):
        if armed() and self.config.point == place and self.progress.frames >= frame:
            raise KINDS[self.config.kind]()


class LeavingLogger(LoggerBase):
    """Raises in one of its methods."""

    class Config(BaseModel, extra="forbid"):
        where: str
        kind: str = "exit"

    def __init__(self, config: Config, context: Any) -> None:
        super().__init__()
        self.config = config
        self._maybe("constructor")

    def log_metrics(self, row, step=None):
        self._maybe("log_metrics")

    def state_dict(self):
        self._maybe("state_dict")
        return {"rows": 1}

    def load_state_dict(self, state):
        self._maybe("load_state_dict")

    def close(self):
        self._maybe("close")

    def _maybe(self, place):
        if armed() and self.config.where == place:
            raise KINDS[self.config.kind]()


if "Leaving-v0" not in gymnasium.registry:
    gymnasium.register("Leaving-v0", LeavingEnv)


@hookimpl
def provide_components():
    return [
        Component("hook", "leaves", Leaves),
        Component("logger", "leaving", LeavingLogger),
    ]
