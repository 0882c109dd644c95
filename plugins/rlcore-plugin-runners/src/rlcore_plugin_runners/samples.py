"""What rlpyt hands to an algorithm's methods, made from what the loop of rlcore has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

# what a step of the optimizer returns, by the names that rlpyt has for it
OPT_NAMES: Final = {"grad_norm": "gradNorm", "loss_critic": "valueLoss", "loss_objective": "piLoss", "loss_q": "qLoss"}


class BatchSpec(NamedTuple):
    """The size of a batch.

    Attributes:
        T: steps of each env.
        B: envs.
    """

    T: int
    B: int

    @property
    def size(self) -> int:
        """Steps of all envs."""
        return self.T * self.B


class EnvSpaces(NamedTuple):
    """The spaces of an env.

    Attributes:
        observation: that of Gymnasium.
        action: that of Gymnasium.
    """

    observation: Any
    action: Any


class Samples:
    """A batch under rlpyt's names, its entries `[time, env, ...]`.

    Attributes:
        batch: the TensorDict `[env, time]` that it shows.
    """

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    @property
    def env(self) -> SimpleNamespace:
        """Observation, reward and done."""
        reward, done = self._of("next", "reward").squeeze(-1), self._of("next", "done").squeeze(-1)
        return SimpleNamespace(observation=self._of("observation"), reward=reward, done=done, env_info=None)

    @property
    def agent(self) -> SimpleNamespace:
        """Action."""
        return SimpleNamespace(action=self._of("action"), agent_info=None)

    def _of(self, *key: str) -> Tensor:
        entry: Tensor = self.batch[key]
        return entry.transpose(0, 1)


class OptInfo:
    """What the optimisation steps of an iteration returned: `opt_info.loss` is a list with one number for each.

    Attributes:
        steps: one mapping of name to scalar for each, on the device of the run.
    """

    def __init__(self, steps: Sequence[Mapping[str, Tensor]]) -> None:
        self.steps = list(steps)

    def __getattr__(self, name: str) -> list[float]:
        if name.startswith("__") or name == "steps":
            raise AttributeError(name)
        figures = figures_of(self.steps)
        if self.steps and name not in figures:
            raise AttributeError(f"the optimisation steps returned no {name!r}, but {', '.join(figures)}")
        return [float(value) for value in figures.get(name, ())]


def figures_of(steps: Sequence[Mapping[str, Tensor]]) -> dict[str, list[Tensor]]:
    """Return what the steps returned, by rlpyt's names; the sum of the losses of each is `loss`."""
    figures: dict[str, list[Tensor]] = {}
    for metrics in steps:
        losses = [value for name, value in metrics.items() if name.startswith("loss")]
        if losses and "loss" not in metrics:
            figures.setdefault("loss", []).append(torch.stack([value.float() for value in losses]).sum())
        for name, value in metrics.items():
            figures.setdefault(OPT_NAMES.get(name, name), []).append(value.float())
    return figures


def steps_of(opt_info: Any) -> list[Mapping[str, Tensor]]:
    """Return what is stored of the infos of a script's own: attributes that are numbers or lists of them."""
    if isinstance(opt_info, OptInfo):
        return list(opt_info.steps)
    names = getattr(opt_info, "_fields", None) or (vars(opt_info) if hasattr(opt_info, "__dict__") else ())
    steps: list[Mapping[str, Tensor]] = []
    for name in names:
        values = getattr(opt_info, name)
        steps += [{name: torch.as_tensor(value)} for value in (values if isinstance(values, list) else [values])]
    return steps
