"""A loose plugin file whose parts fail in every way that a test asks for."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from pydantic import BaseModel
from rlcore_plugin_ppo.loss import PPOLoss
from rlcore_plugin_testing.toy_parts import ToyCheckpointer
from rlcore_plugin_torch.checkpointer import TorchCheckpointer

from rlcore import Component, Context, hookimpl
from rlcore.loggers.base import LoggerBase


class AtPoint:
    """Raises, or returns something wrong, at one point from some frame on."""

    class Config(BaseModel, extra="forbid"):
        point: str
        from_frame: int = 0
        returns: Any = None

    def __init__(self, config: Config, context: Context) -> None:
        def act():
            if context.progress.frames < config.from_frame:
                return {} if config.point == "optimizer" else None
            if config.returns is not None:
                return config.returns
            raise RuntimeError("on purpose")

        setattr(self, config.point, hookimpl(act))


class Pause:
    """Sleeps at one point, from some frame on."""

    class Config(BaseModel, extra="forbid"):
        seconds: float
        point: str = "post_steps"
        from_frame: int = 0

    def __init__(self, config: Config, context: Context) -> None:
        def act():
            if context.progress.frames >= config.from_frame:
                time.sleep(config.seconds)

        setattr(self, config.point, hookimpl(act))


def armed(context):
    """Return whether the test wants the fault in this process; the config is the same with and without."""
    return os.environ.get("TEST_FAULTS") == "1" and context.run.folder is not None


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Signals:
    """Sends a signal to its own process at one point, once, from some frame on, if it is armed."""

    class Config(BaseModel, extra="forbid"):
        point: str
        from_frame: int = 0
        to: Literal["itself", "supervisor"] = "itself"

    def __init__(self, config: Config, context: Context) -> None:
        self.left = int(armed(context) and not context.group.rank)

        def act():
            if self.left and context.progress.frames >= config.from_frame:
                self.left = 0
                os.kill(os.getpid() if config.to == "itself" else parent_of(os.getppid()), signal.SIGTERM)
                time.sleep(0.0 if config.to == "itself" else 0.5)  # the supervisor passes it on

        setattr(self, config.point, hookimpl(act))


class SignalsWhileSaving(ToyCheckpointer):
    """Sends signals to its own process in the middle of its second save, if it is armed, and then takes its time.

    It goes on writing meanwhile, so that the save moves.
    """

    class Config(BaseModel, extra="forbid"):
        signals: list[str] = ["SIGTERM"]
        seconds: float = 0.0

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(None, context)
        self.config = config
        self.saves = 0
        self.armed = armed(context)

    def save(self, folder, tensors):
        self.saves += 1
        if self.armed and self.saves == 2:
            for name in self.config.signals:
                os.kill(os.getpid(), signal.Signals[name])
            end = time.monotonic() + self.config.seconds
            while time.monotonic() < end:
                with (folder / "growing").open("ab") as stream:
                    stream.write(b"x")
                time.sleep(0.05)
            (folder / "growing").unlink(missing_ok=True)
        super().save(folder, tensors)


class Hangs:
    """Sleeps for a minute at one point from some frame on, if it is armed."""

    class Config(BaseModel, extra="forbid"):
        point: str
        from_frame: int = 0

    def __init__(self, config: Config, context: Context) -> None:
        self.armed = armed(context)

        def act():
            if self.armed and context.progress.frames >= config.from_frame:
                (context.run.folder / "hangs").touch()
                time.sleep(60)

        setattr(self, config.point, hookimpl(act))


class Deaf:
    """Lets the main thread hear no signal, and sleeps for a minute, from some frame on."""

    class Config(BaseModel, extra="forbid"):
        from_frame: int = 40

    def __init__(self, config: Config, context: Context) -> None:
        def act():
            if armed(context) and context.progress.frames >= config.from_frame:
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
                (context.run.folder / "hangs").touch()
                time.sleep(60)

        self.post_optim = hookimpl(act)


class SleepsWhileBuilt:
    """Takes a minute to build, if it is armed."""

    def __init__(self, config: Any, context: Context) -> None:
        if armed(context):
            (context.run.folder / "hangs").touch()
            time.sleep(60)

    @hookimpl
    def setup(self):
        """Nothing: a hook implements a point."""


class StopsItselfWhileBuilt:
    """Asks for a stop while it is built, swallows what that raises, and goes on for as long as it can."""

    def __init__(self, config: Any, context: Context) -> None:
        if context.run.folder is not None:
            with contextlib.suppress(BaseException):
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(30)
            time.sleep(30)

    @hookimpl
    def setup(self):
        """Nothing: a hook implements a point."""


class Rings:
    """Sets an alarm at one point, which it handles itself or not, and waits for it."""

    class Config(BaseModel, extra="forbid"):
        handled: bool

    def __init__(self, config: Config, context: Context) -> None:
        self.config, self.context, self.left = config, context, int(armed(context))

    @hookimpl
    def post_steps(self):
        if self.left and self.context.progress.frames >= 40:
            self.left, rings = 0, []
            if self.config.handled:
                signal.signal(signal.SIGALRM, lambda *arguments: rings.append(1))
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            time.sleep(0.3)
            assert len(rings) == self.config.handled


class NaNLoss(PPOLoss):
    """Is not a number after some updates."""

    class Config(PPOLoss.Config):
        after: int = 5

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self.after, self.progress = config.after, context.progress

    def forward(self, minibatch):
        losses = super().forward(minibatch)
        if self.progress.updates >= self.after:
            losses["loss_critic"] = losses["loss_critic"] * torch.nan
        return losses


class FullDisk(TorchCheckpointer):
    """Saves some checkpoints; then the disk is full."""

    class Config(BaseModel, extra="forbid"):
        saves: int = 1

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(TorchCheckpointer.Config(), context)
        self.left = config.saves

    def save(self, folder, tensors):
        if not self.left:
            (folder / "half").write_bytes(b"x")
            raise OSError(errno.ENOSPC, "No space left on device")
        self.left -= 1
        super().save(folder, tensors)


class FailingLogger(LoggerBase):
    """A logger whose server is gone."""

    def __init__(self, config: Any, context: Context) -> None:
        super().__init__()

    def _fail(self, *arguments):
        raise ConnectionError("server gone")

    log_metrics = log_hparams = flush = close = state_dict = load_state_dict = _fail


class FaultyEnv(gymnasium.Env):
    """An env that fails in its constructor, in `reset`, or in step number `at`."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, fault="", at=10):
        self.fault, self.at, self.count = fault, at, 0
        if fault == "constructor":
            raise ValueError("no licence")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.fault == "reset":
            raise RuntimeError("simulator gone")
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.count += 1
        observation, reward = np.zeros(2, np.float32), 1.0
        if self.count >= self.at:
            if self.fault == "step":
                raise RuntimeError("simulator gone")
            if self.fault == "reward":
                reward = float("nan")
            if self.fault == "observation":
                observation[1] = np.inf
            if self.fault == "shape":
                observation = np.zeros(3, np.float32)
            if self.fault == "no reward":
                reward = "much"
        return observation, reward, self.count % 7 == 0, False, {}


if "Faulty-v0" not in gymnasium.registry:
    gymnasium.register("Faulty-v0", FaultyEnv)


@hookimpl
def provide_components():
    return [
        Component("hook", "at-point", AtPoint),
        Component("hook", "pause", Pause),
        Component("hook", "signals", Signals),
        Component("hook", "hangs", Hangs),
        Component("hook", "deaf", Deaf),
        Component("hook", "rings", Rings),
        Component("hook", "sleeps-while-built", SleepsWhileBuilt),
        Component("hook", "stops-itself-while-built", StopsItselfWhileBuilt),
        Component("checkpointer", "signals-while-saving", SignalsWhileSaving),
        Component("loss", "nan-loss", NaNLoss),
        Component("checkpointer", "full-disk", FullDisk),
        Component("logger", "failing", FailingLogger),
    ]
