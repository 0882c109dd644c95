"""A step of policy and env as one compiled graph; an env that is written as functions can be seen by the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.plugins import lend
from rlcore_plugin_device.functional import FunctionalEnv, Moment

if TYPE_CHECKING:
    from rlcore import Context
    from rlcore_plugin_device.tensor_env import TensorEnv, TensorStep

Act: TypeAlias = Callable[..., tuple[Tensor, ...]]
Step: TypeAlias = "Callable[..., tuple[tuple[Tensor, ...], TensorStep]]"


def compiled_step(env: TensorEnv, context: Context) -> Step:
    """Return what acts and steps the env: called with `act` of the policy and what that takes.

    Raises:
        ConfigError: the env steps by itself, or there is no compiler.
        MissingPluginError: rlcore-plugin-compile is not installed.
    """
    if not isinstance(env, FunctionalEnv):
        raise ConfigError(
            f"[collector] compile: {type(env).__name__} steps by itself, out of the sight of the compiler; set "
            "compile = false, or derive it from FunctionalEnv"
        )
    lend("rlcore.learners", "check_compiler")(context.device)
    stepped = env.stepped

    def both(act: Act, moment: Moment, *inputs: Tensor) -> tuple[tuple[Tensor, ...], Moment, TensorStep]:
        acted = act(*inputs)
        return acted, *stepped(moment, acted[0])

    graph = torch.compile(both, dynamic=False, fullgraph=True)

    def step(act: Act, *inputs: Tensor) -> tuple[tuple[Tensor, ...], TensorStep]:
        assert env.moment is not None, "reset comes first"
        acted, env.moment, last = graph(act, env.moment, *inputs)
        return acted, last

    return step
