"""Says in plain words what goes wrong in a run, as far as the figures that it logs show it."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import torch
from pydantic import BaseModel, Field

from rlcore import hookimpl
from rlcore.errors import ConfigError
from rlcore.types import ENDLESS, Context, Progress
from rlcore_plugin_health.checks import CHECKS, Figures, Memory, state_of
from rlcore_plugin_health.loss_checks import checks_of, lasting
from rlcore_plugin_health.warnings_file import Warned, write_warnings

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types import EvaluationResult, Trainer

log = logging.getLogger(__name__)

# standard deviation of returns, as a fraction of their mean, below which there is nothing to explain
_ALIKE: Final = 0.01


class Health:
    """Warns once of each thing that goes wrong, such as values beyond what rewards allow.

    It looks when a row of metrics was written, at what is in it; the largest reward stays on its device until then.
    What it warned of is in `health.json` of the run folder too, which a resume cuts back to the checkpoint. A loss may
    bring checks of its own (`ChecksItself`).

    Attributes:
        observer: True; it changes nothing.
        takes_columns: True; it reads entries alone.

    Raises:
        ConfigError: `ignore` names a check that neither this hook nor the loss has.
    """

    observer: Final = True
    takes_columns: Final = True

    class Config(BaseModel, extra="forbid"):
        """What it leaves out."""

        ignore: list[str] = Field(default_factory=list, description="names of checks to leave out")
        value_factor: float = Field(
            10.0, gt=1, description="how many times as large as the largest possible return a value may be"
        )

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._spec = context.env_spec
        self._gamma = _gamma_of(context.run.resolved_config)
        self._loss_checks = checks_of(context.built.get("loss"))
        _check_names(config.ignore, [*CHECKS, *self._loss_checks])
        self._most: Tensor | None = None
        self._looked_at = -1
        self._said: list[str] = []
        self._warned: list[Warned] = []
        self._folder = context.run.folder if context.group.rank == 0 else None
        self._memory = Memory()

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        """Begin behind what was written before a resume; what a run warned of after its checkpoint is left out."""
        self._looked_at = trainer.metrics.written_at
        self._write()

    @hookimpl
    def evaluation(self, result: EvaluationResult) -> None:
        """Remember the first evaluation, and the best one since."""
        memory = self._memory
        if memory.first_evaluation is None:
            memory.first_evaluation = result.mean_return
            return
        memory.evaluations += 1
        memory.best_since = max(result.mean_return, -math.inf if memory.best_since is None else memory.best_since)

    @hookimpl
    def post_steps_log(self, batch: TensorDict | None, trainer: Trainer) -> None:
        """Take in the rewards, and look at the metrics where a row was written since."""
        reward = None if batch is None else batch.get(("next", "reward"), None)
        if reward is not None:
            most = reward.abs().amax()
            self._most = most if self._most is None else torch.maximum(self._most, most)
        self._look_if_written(batch, trainer)

    @hookimpl
    def shutdown(self, trainer: Trainer) -> None:
        """Look at the last row."""
        self._look_if_written(None, trainer)

    def state_dict(self) -> dict[str, Any]:
        """Return what was said, and what the checks remember."""
        return {
            "said": list(self._said),
            "warned": [dict(warned) for warned in self._warned],
            "most_reward": self._most,
            "memory": state_of(self._memory),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set them."""
        self._said = list(state["said"])
        self._warned = [cast(Warned, dict(warned)) for warned in state.get("warned", [])]
        self._most = state["most_reward"]
        self._memory = Memory(**state["memory"])

    def _look_if_written(self, batch: TensorDict | None, trainer: Trainer) -> None:
        if trainer.metrics.written_at == self._looked_at:
            return
        self._looked_at = trainer.metrics.written_at
        for name, message in self._messages(self._figures(batch, trainer)):
            if message is not None:
                self._warn(name, message, trainer.progress)

    def _messages(self, now: Figures) -> Iterator[tuple[str, str | None]]:
        """Yield the name and the message of each check that has not warned yet and is not left out."""
        over = {*self._said, *self._config.ignore}
        for name, check in CHECKS.items():
            if name not in over:
                yield name, check(now, self._memory)
        for name, of_loss in self._loss_checks.items():
            if name not in over:
                yield name, lasting(name, of_loss(now.row, now.most_reward or 0.0), self._memory.succession)

    def _warn(self, check: str, message: str, progress: Progress) -> None:
        self._said.append(check)
        self._warned.append(Warned(frames=progress.now, check=check, message=message))
        log.warning("health, %s %s: %s", progress.unit, f"{progress.now:,}", message)
        self._write()

    def _write(self) -> None:
        if self._folder is None:
            return
        try:
            write_warnings(self._folder, self._warned)
        except OSError as error:  # what only watches stops no run
            log.warning("health: %s: %s", self._folder, error)

    def _figures(self, batch: TensorDict | None, trainer: Trainer) -> Figures:
        progress, spec = trainer.progress, self._spec
        most_value, explained = (None, None) if batch is None else _of_the_critic(batch)
        return Figures(
            row=trainer.metrics.latest,
            progress=0.0 if progress.total == ENDLESS else progress.now / progress.total,
            frames=progress.frames,
            updates=progress.updates,
            episodes=progress.episodes,
            steps=progress.frames // (spec.num_envs * spec.frame_skip),
            gamma=self._gamma,
            most_reward=None if self._most is None else float(self._most),
            most_value=most_value,
            explained=explained,
            discrete_entropy=_entropy_of_uniform(spec.action_space),
            dimensions=int(math.prod(spec.action_space.shape or (1,))),
            factor=self._config.value_factor,
        )


def _check_names(ignored: Sequence[str], known: Sequence[str]) -> None:
    for name in ignored:
        if name not in known:
            raise ConfigError(f"[[hook]] health: ignore names {name!r}; the checks of this run are {', '.join(known)}")


def _gamma_of(config: Mapping[str, Any]) -> float | None:
    """Return the discount that the loss or the estimator of a config has."""
    found = [config[section].get("gamma") for section in ("loss", "estimator") if section in config]
    return next((float(gamma) for gamma in found if gamma is not None), None)


def _entropy_of_uniform(space: Any) -> float | None:
    """Return the entropy of the uniform policy over discrete actions; None for others."""
    from gymnasium.spaces import Discrete, MultiBinary, MultiDiscrete

    if isinstance(space, Discrete):
        return math.log(int(space.n))
    if isinstance(space, MultiBinary):
        return math.log(2) * math.prod(space.shape)
    return float(np.log(space.nvec).sum()) if isinstance(space, MultiDiscrete) else None


def _of_the_critic(batch: TensorDict) -> tuple[float | None, float | None]:
    """Return the largest absolute value of the critic in a batch, and the fraction of the variance it explains."""
    value, target = batch.get("state_value", None), batch.get("value_target", None)
    if value is None:
        return None, None
    most = float(value.abs().amax())
    if target is None or target.shape != value.shape or target.numel() < 2:
        return most, None
    variance, mean = float(target.double().var()), float(target.double().mean())
    if math.sqrt(variance) <= _ALIKE * abs(mean):
        return most, None
    return most, 1 - float((target - value).double().var()) / variance
